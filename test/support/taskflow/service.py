"""A TaskFlow service that a test tells what to do: one line of JSON a command, over a loopback socket, one line an answer.

    service.py PORT HOSTS PATH WHO
"""
import contextlib
import json
import logging
import os
import socket
import sys
import threading

from taskflow import engines, exceptions, task
from taskflow.conductors import backends as conductors
from taskflow.jobs import backends
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistences
from taskflow.persistence import models

EXECUTED = []


class Say(task.Task):
    def execute(self, text):
        EXECUTED.append(text)


def say_flow():
    return linear_flow.Flow("say").add(Say())


class Service:
    def __init__(self, hosts, path, who):
        conf = {"board": "zookeeper", "hosts": hosts, "path": path, "timeout": 2.0}
        self.who = who
        self.persistence = persistences.fetch({"connection": "memory"})
        self.board = backends.fetch("board", conf, persistence=self.persistence)
        self.board.connect()
        self.worker = None
        self.stopping = threading.Event()

    @property
    def client(self):
        return self.board._client

    def session(self):
        """A number of 64 bits, as text: not everybody's JSON has such numbers. Empty while there is none."""
        known = self.client.client_id
        return str(known[0]) if known else ""

    def post(self, name, **options):
        return self.board.post(name, **options).uuid

    def jobs(self):
        return [
            {
                "uuid": job.uuid,
                "name": job.name,
                "state": job.state,
                "priority": job.priority.value,
                "details": job.details,
                "book": job.book_uuid,
                "owner": self.board.find_owner(job),
            }
            for job in self.board.iterjobs(ensure_fresh=True)
        ]

    def details(self, uuid):
        """As text, so that it is told as Python reads it: 2.0 is not 2."""
        return repr(self._find(uuid).details)

    def state(self, uuid):
        """Of a job that was seen here before, as TaskFlow judges it."""
        return self._find(uuid).state

    def claim(self, uuid):
        self.board.claim(self._find(uuid), self.who)

    def consume(self, uuid):
        self.board.consume(self._find(uuid), self.who)

    def abandon(self, uuid):
        self.board.abandon(self._find(uuid), self.who)

    def trash(self, uuid):
        self.board.trash(self._find(uuid), self.who)

    def work(self, log):
        """Claims whatever it finds until it is told to rest, and writes down what it owns."""
        self.worker = threading.Thread(target=self._work, args=(log,), daemon=True)
        self.worker.start()

    def rest(self):
        self.stopping.set()
        self.worker.join()

    def post_flow(self, text):
        """A job as TaskFlow's conductors run it: its flow is in a logbook."""
        book = models.LogBook("book")
        detail = models.FlowDetail("say", book.uuid)
        book.add(detail)
        with contextlib.closing(self.persistence.get_connection()) as connection:
            connection.save_logbook(book)
        engines.save_factory_details(detail, say_flow, (), {}, backend=self.persistence)
        details = {"flow_uuid": detail.uuid, "store": {"text": text}}
        return self.board.post("say", book=book, details=details).uuid

    def conduct(self):
        conductor = conductors.fetch("blocking", self.who, self.board, persistence=self.persistence, wait_timeout=0.01)
        self.worker = threading.Thread(target=conductor.run, daemon=True)
        self.worker.start()

    def executed(self):
        return EXECUTED

    def _find(self, uuid):
        known = list(self.board._known_jobs.values())
        for job in known:
            if job.uuid == uuid:
                return job
        self.board._force_refresh()
        for job in list(self.board._known_jobs.values()):
            if job.uuid == uuid:
                return job
        raise exceptions.NotFound("job %s is not known here" % uuid)

    def _work(self, log):
        out = os.open(log, os.O_WRONLY | os.O_APPEND)
        given_back = set()
        while not self.stopping.is_set():
            tried = 0
            for job in self.board.iterjobs(only_unclaimed=True, ensure_fresh=True):
                tried += self._do(job, out, given_back)
                if self.stopping.is_set():
                    return
            if tried == 0:
                self.stopping.wait(0.02)

    def _do(self, job, out, given_back):
        def write(what, session=""):
            os.write(out, ("%s %s %s %s\n" % (what, job.uuid, self.who, session)).encode())

        session = self.session()
        try:
            self.board.claim(job, self.who)
        except (exceptions.UnclaimableJob, exceptions.NotFound, exceptions.JobFailure):
            return 0
        write("own", session)
        # Every third job is given back once, for whoever comes next.
        abandons = job.sequence % 3 == 0 and job.uuid not in given_back
        try:
            if abandons:
                given_back.add(job.uuid)
                write("free")
                self.board.abandon(job, self.who)
            else:
                self.board.consume(job, self.who)
                write("done")
        except exceptions.NotFound:
            write("refused")
        except exceptions.JobFailure:
            write("refused" if abandons else "unsure")
        return 1


def main():
    port, hosts, path, who = sys.argv[1:]
    # What it says of sessions that a test ends is no news.
    logging.disable(logging.CRITICAL)
    service = Service(hosts, path, who)
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        lines = connection.makefile("rw", encoding="utf-8")
        for line in lines:
            command = json.loads(line)
            try:
                arguments = command.get("arguments", {})
                answer = {"value": getattr(service, command["name"])(**arguments)}
            except Exception as error:
                answer = {"error": type(error).__name__, "message": str(error)}
            lines.write(json.dumps(answer) + "\n")
            lines.flush()


main()
