"""The same verbs for blocking code: from threads, beside an event loop, after a fork."""

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from tests.client.conftest import Worker
from tests.support.patience import eventually_blocking, seconds_left

from fenceline import DatabaseUnavailable, Fenceline, InvalidArgs, NotFound, Status, SyncJob, WrongStatus
from fenceline.client.app_parts import app_parts
from fenceline.client.enqueuer import Enqueuer
from fenceline.client.job import Job
from fenceline.client.jobs import Jobs
from fenceline.client.lanes import Lanes
from fenceline.client.sync_enqueuer import SyncEnqueuer
from fenceline.client.sync_jobs import SyncJobs
from fenceline.client.sync_lanes import SyncLanes
from fenceline.client.sync_system import SyncSystem
from fenceline.client.system import System
from fenceline.errors import UnknownLane
from fenceline.model.public_id import format_id

WAITING_FOR_LOCKS_SQL = (
    "select count(*) from pg_stat_activity "
    "where datname = current_database() and application_name = 'fenceline' and wait_event_type = 'Lock'"
)


@pytest.fixture
def blocking(database: str) -> Iterator[Fenceline]:
    app = Fenceline(database)
    yield app
    app.sync.close()


def finish(database: str, job: SyncJob[Any], result: str) -> None:
    """Claim and finish the next job, which must be this one."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(
            "select fenceline.public_id(c.job_id), fenceline.finish_attempt(c.job_id, c.attempt_id, p_result => %s) "
            "from fenceline.claim_jobs(fenceline.register_worker('test')) c",
            [result],
        ).fetchone()
    assert row == (job.id, "accepted")


def test_the_twin_has_every_verb() -> None:
    twins = [
        (Job, SyncJob), (Enqueuer, SyncEnqueuer), (Jobs, SyncJobs), (Lanes, SyncLanes), (System, SyncSystem),
    ]  # fmt: skip
    for original, twin in twins:
        for verb, function in inspect.getmembers(original, inspect.isfunction):
            blocking = getattr(twin, verb)
            assert inspect.signature(function).parameters.keys() == inspect.signature(blocking).parameters.keys()
            assert not inspect.iscoroutinefunction(blocking)
            assert not inspect.isasyncgenfunction(blocking)


def test_every_verb_blocks(blocking: Fenceline, database: str) -> None:
    @blocking.job()
    def when(day: int) -> datetime:
        raise NotImplementedError

    queue = blocking.sync
    job = when.sync.enqueue(day=1)
    assert (job.created, job.status(), repr(job)) == (True, Status.QUEUED, f"<SyncJob {job.id}>")
    assert job == queue.jobs.handle(job.id)
    assert job.reprioritise(4) == 0
    finish(database, job, '"2026-01-31T00:00:00Z"')
    assert job.result(timeout=seconds_left()) == datetime(2026, 1, 31, tzinfo=UTC)
    assert job.wait(timeout=seconds_left()) is Status.SUCCEEDED
    assert job.get() == queue.jobs.get(job.id)
    assert (job.logs(), job.steps(), job.phases(), job.progress().phase) == ([], [], [], None)
    again = job.retry()
    assert isinstance(again, SyncJob)
    assert again.cancel("enough") is Status.CANCELLED
    with pytest.raises(WrongStatus):
        again.cancel()
    again.delete()
    with pytest.raises(NotFound):
        again.get()

    assert when.options(needs_approval=True).sync.enqueue(2).approve(actor="ann") is Status.QUEUED
    assert queue.enqueue("other", {"n": 1}, needs_approval=True).reject() is Status.CANCELLED
    assert len(when.sync.enqueue_many([{"day": 1}, {"day": 2}])) == 2
    assert isinstance(when.sync, SyncEnqueuer)
    with pytest.raises(InvalidArgs):
        queue.enqueue("when", {"day": "x"})
    with pytest.raises(UnknownLane):
        queue.enqueue("other", lane="nowhere")

    assert len(queue.jobs.list(limit=2).items) == 2
    assert [record.kind for record in queue.jobs.each(kind="other")] == ["other"]
    assert queue.system.depth() == 3
    assert queue.lanes.create("made", slots=1).slots == 1
    assert queue.lanes.set("made", slots=2).slots == 2
    assert not queue.lanes.drain("made").enabled
    assert queue.lanes.resume("made").enabled
    queue.lanes.delete("made")
    assert "made" not in [lane.name for lane in queue.lanes.list()]
    queue.system.drain("closed")
    queue.system.resume()
    with pytest.raises(TimeoutError):
        queue.enqueue("other").result(timeout=0.05)
    with pytest.raises(NotFound):
        queue.jobs.handle(format_id(12345)).result(timeout=seconds_left())


def test_many_threads_share_one_loop(blocking: Fenceline) -> None:
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(lambda n: blocking.sync.enqueue("work", {"n": n}), range(80)))

    assert len(set(jobs)) == 80
    assert [thread.name for thread in threading.enumerate()].count("fenceline sync") == 1
    assert blocking.sync.system.depth() == 80


async def test_beside_a_running_event_loop(app: Fenceline, worker: Worker) -> None:
    first = await asyncio.to_thread(app.sync.enqueue, "work")
    second = app.sync.enqueue("work")  # blocks this loop for that long, but does not hang
    await worker.run(first, result=1)

    assert await asyncio.to_thread(first.result, seconds_left()) == 1
    assert await app.jobs.handle(second.id).status() is Status.QUEUED


def test_close_and_use_again(blocking: Fenceline) -> None:
    blocking.sync.enqueue("work")
    blocking.sync.close()
    blocking.sync.close()
    assert "fenceline sync" not in [thread.name for thread in threading.enumerate()]

    assert blocking.sync.enqueue("work").created


def test_close_frees_threads_that_wait(blocking: Fenceline, database: str) -> None:
    job = blocking.sync.enqueue("work")
    with ThreadPoolExecutor(2) as threads, psycopg.connect(database) as locker:
        locker.execute("lock table fenceline.job in access exclusive mode")
        calls = [threads.submit(job.result, seconds_left()), threads.submit(blocking.sync.enqueue, "work")]
        with psycopg.connect(database, autocommit=True) as observer:
            eventually_blocking(
                lambda: observer.execute(WAITING_FOR_LOCKS_SQL).fetchone() == (2,), "both calls are under way"
            )
        blocking.sync.close()

        for call in calls:
            with pytest.raises(DatabaseUnavailable, match="the client was closed while"):
                call.result(timeout=seconds_left())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where whoever started the tests has SIGINT ignored (a background job)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_once_it_waits(database: str) -> None:
    """Not before: the call must be under way."""
    with psycopg.connect(database, autocommit=True) as observer:
        eventually_blocking(lambda: observer.execute(WAITING_FOR_LOCKS_SQL).fetchone() != (0,), "the call waits")
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_call_is_given_up(blocking: Fenceline, database: str, interruptible: None) -> None:
    blocking.sync.enqueue("work")
    with psycopg.connect(database) as locker:
        locker.execute("lock table fenceline.job in access exclusive mode")
        interrupt = threading.Thread(target=interrupt_once_it_waits, args=(database,))
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            blocking.sync.enqueue("work")
        interrupt.join()
        # The cancellation travels to the server by itself; the lock must outlast it.
        with psycopg.connect(database, autocommit=True) as observer:
            eventually_blocking(
                lambda: observer.execute(WAITING_FOR_LOCKS_SQL).fetchone() == (0,), "nobody waits for the lock"
            )

    assert blocking.sync.system.depth() == 1


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_after_a_fork_parent_and_child_go_on(blocking: Fenceline) -> None:
    """As under gunicorn with preload: the parent has used its connections, the child makes its own."""
    job = blocking.sync.enqueue("work")

    def fork_while_the_lock_is_held() -> int:
        with app_parts(blocking).sync_database()._guard:
            return os.fork()

    child = fork_while_the_lock_is_held()
    if child == 0:
        status = 1
        try:
            signal.alarm(round(seconds_left()) or 1)
            blocking.sync.enqueue("work")
            if blocking.sync.jobs.handle(job.id).status() is Status.QUEUED:
                blocking.sync.close()
                status = 0
        finally:
            os._exit(status)
    for _ in range(10):
        blocking.sync.enqueue("work")
    _, status = os.waitpid(child, 0)

    assert status == 0
    assert blocking.sync.system.depth() == 12
