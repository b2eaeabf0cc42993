"""Celery and RQ for `bench -- pool`, from Debian's packages: `pool_queues.py ROLE URI`.

The roles `celery-worker` and `rq-worker` work until they are killed. The roles `celery` and `rq` read a count from each line of
their input, post as many tasks that do nothing, wait until all results are there, and print how many seconds that took. Celery
has a worker with two processes; RQ has two workers, which fork a process for each task. Everything else is as it comes.
"""
import os
import sys
import time

POLL_S = 0.005


def noop():
    """Does nothing. RQ finds it by the name of this module."""


def celery_app(uri):
    import celery

    app = celery.Celery("bench", broker=uri, backend=uri)
    return app, app.task(noop, name="noop")


def celery_worker(uri):
    app, _ = celery_app(uri)
    # Celery refuses to run as root otherwise.
    os.environ["C_FORCE_ROOT"] = "1"
    app.worker_main(["worker", "--pool", "prefork", "--concurrency", "2", "--loglevel", "ERROR"])


def celery_client(uri):
    import celery

    _, task = celery_app(uri)

    def tasks(count):
        celery.group(task.s() for _ in range(count)).apply_async().get()

    return tasks


def rq_worker(uri):
    import redis
    import rq

    # A process that is forked for a task finds it imported.
    import pool_queues  # noqa: F401

    connection = redis.Redis.from_url(uri)
    rq.Worker([rq.Queue("bench", connection=connection)], connection=connection).work(logging_level="ERROR")


def rq_client(uri):
    import redis
    import rq
    import rq.job

    queue = rq.Queue("bench", connection=redis.Redis.from_url(uri))

    def tasks(count):
        jobs = queue.enqueue_many([rq.Queue.prepare_data("pool_queues.noop") for _ in range(count)])
        ids = [job.id for job in jobs]
        # The keys of finished jobs: one question for all of them, however many there are.
        while queue.finished_job_registry.count < count:
            time.sleep(POLL_S)
        for job_id in ids:
            queue.finished_job_registry.remove(job_id)

    return tasks


def serve(tasks):
    # The first tasks import and connect whatever is imported and connected late.
    tasks(10)
    print("ready", flush=True)
    for line in sys.stdin:
        begin = time.monotonic()
        tasks(int(line))
        print(time.monotonic() - begin, flush=True)


if __name__ == "__main__":
    role, uri = sys.argv[1:]
    if role == "celery-worker":
        celery_worker(uri)
    elif role == "rq-worker":
        rq_worker(uri)
    elif role == "celery":
        serve(celery_client(uri))
    elif role == "rq":
        serve(rq_client(uri))
