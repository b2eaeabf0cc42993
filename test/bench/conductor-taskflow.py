"""TaskFlow's conductor and a flow of two tasks: `conductor-taskflow.py HOSTS PATH PERSISTENCE JOBS`, prints jobs per second.

The jobs are on the board, with their logbooks, before its conductor begins.
"""
import contextlib
import logging
import sys
import threading
import time

from taskflow import engines, task
from taskflow.conductors import backends as conductors
from taskflow.jobs import backends
from taskflow.patterns import linear_flow
from taskflow.persistence import backends as persistences
from taskflow.persistence import models

logging.disable(logging.CRITICAL)


class One(task.Task):
    default_provides = "text"

    def execute(self):
        return "what one has made"


class Two(task.Task):
    def execute(self, text):
        return len(text)


def two_flow():
    return linear_flow.Flow("two").add(One(), Two())


hosts, path, where, jobs = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
conf = {"connection": where}
if where == "directory":
    conf = {"connection": "dir", "path": sys.argv[5]}
if where == "sqlite":
    conf = {"connection": "sqlite:///%s" % sys.argv[5]}
persistence = persistences.fetch(conf)
with contextlib.closing(persistence.get_connection()) as connection:
    connection.upgrade()
board = backends.fetch("board", {"board": "zookeeper", "hosts": hosts, "path": path}, persistence=persistence)
board.connect()
for _ in range(jobs):
    book = models.LogBook("book")
    detail = models.FlowDetail("two", book.uuid)
    book.add(detail)
    with contextlib.closing(persistence.get_connection()) as connection:
        connection.save_logbook(book)
    engines.save_factory_details(detail, two_flow, (), {}, backend=persistence)
    board.post("two", book=book, details={"flow_uuid": detail.uuid})

done = 0
over = threading.Event()


def consumed(event, details):
    global done
    done += 1
    if done == jobs:
        over.set()


conductor = conductors.fetch("blocking", "conductor", board, persistence=persistence, wait_timeout=0.001)
conductor.notifier.register("job_consumed", consumed)
begin = time.monotonic()
threading.Thread(target=conductor.run, daemon=True).start()
over.wait()
print(jobs / (time.monotonic() - begin), flush=True)
conductor.stop()
