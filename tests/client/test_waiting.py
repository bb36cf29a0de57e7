"""Waiting for a job's end: told at once, polling as the truth, a thousand waiters on one connection."""

import asyncio
import re
import time
from collections import Counter
from typing import Any

import pytest
from tests.client.conftest import Worker

from fenceline import DatabaseUnavailable, Fenceline, Job, NotFound, Status
from fenceline.client.app_parts import app_parts
from fenceline.database.call import Call
from fenceline.model.public_id import format_id, parse_id
from fenceline.runtime import outcome_waiter
from fenceline.runtime.database import Database

NEVER = 3600.0
LISTENERS_SQL = "select pid from pg_stat_activity where datname = current_database() and query ilike 'listen %'"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the client's statements by the function that they call."""
    counter: Counter[str] = Counter()
    real = Database.call

    async def count(self: Database, call: Call[Any], connection: Any = None) -> Any:
        counter[call.sql.partition("fenceline.")[2].partition("(")[0]] += 1
        return await real(self, call, connection)

    monkeypatch.setattr(Database, "call", count)
    return counter


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first looks at a job only a notification brings news."""
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", NEVER)


async def listener(worker: Worker) -> int:
    """The backend of the one connection that listens, once there is one."""
    async with asyncio.timeout(20):
        while True:
            pids = [row["pid"] for row in await worker.connection.fetch(LISTENERS_SQL)]
            if pids:
                assert len(pids) == 1
                return int(pids[0])
            await asyncio.sleep(0.02)


async def settle_in(worker: Worker) -> None:
    """Let a waiting room get past its first looks."""
    await listener(worker)
    await asyncio.sleep(4 * outcome_waiter.SECOND_LOOK_SECONDS)


def start_waiting(job: Job[Any], timeout: float = 30) -> "asyncio.Task[Any]":
    return asyncio.create_task(job.result(timeout=timeout))


async def test_a_notification_brings_the_result_at_once(
    app: Fenceline, worker: Worker, no_polling: None, statements: Counter[str]
) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    statements.clear()

    started = time.monotonic()
    await worker.run(job, result="done")
    assert await result == "done"
    # Without polling there is no other way; and it took one look.
    assert statements == {"outcomes": 1}
    assert time.monotonic() - started < 5


async def test_a_notification_names_many_jobs(app: Fenceline, worker: Worker, no_polling: None) -> None:
    @app.job()
    async def work(n: int) -> int:
        raise NotImplementedError

    jobs = await work.enqueue_many({"n": n} for n in range(700))
    results = [start_waiting(job) for job in jobs]
    await settle_in(worker)
    attempts = await worker.claim(limit=700)
    await worker.connection.execute(
        "select fenceline.finish_attempts($1, $2, p_results => array_fill('7'::jsonb, array[700]))",
        list(attempts),
        list(attempts.values()),
    )

    assert await asyncio.gather(*results) == [7] * 700


async def test_polling_alone_is_enough(app: Fenceline, worker: Worker, statements: Counter[str]) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    # Nobody is known to watch, so nobody is notified.
    await worker.connection.execute("delete from fenceline.watch")
    await worker.run(job, result="done")

    assert await result == "done"


async def test_jobs_that_have_ended_before(app: Fenceline, worker: Worker, no_polling: None) -> None:
    job = await app.enqueue("work")
    await worker.run(job, result=1)

    assert await job.result(timeout=20) == 1
    assert await job.wait(timeout=20) is Status.SUCCEEDED


async def test_many_waiters_for_one_job(
    app: Fenceline, worker: Worker, no_polling: None, statements: Counter[str]
) -> None:
    job = await app.enqueue("work")
    results = [start_waiting(job) for _ in range(50)]
    await settle_in(worker)
    assert statements["watch_jobs"] == 1

    await worker.run(job, result=1)
    assert await asyncio.gather(*results) == [1] * 50


async def test_the_watch_is_renewed(app: Fenceline, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_waiter, "WATCH_SECONDS", 0.4)
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", 0.1)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    await worker.connection.execute("delete from fenceline.watch")
    async with asyncio.timeout(20):
        while not await worker.connection.fetchval("select count(*) from fenceline.watch"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    await worker.run(job, result=1)
    assert await result == 1


async def test_newcomers_do_not_keep_the_room_from_polling(
    app: Fenceline, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", 0.3)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    attempt_id = await worker.start(job)
    others = [(await app.enqueue("work")) for _ in range(100)]
    await worker.connection.execute("delete from fenceline.watch")
    await worker.finish(parse_id(job.id), attempt_id, result=1)

    started = time.monotonic()
    newcomers = []
    for other in others:
        newcomers.append(start_waiting(other, timeout=0.1))
        await asyncio.sleep(0.02)
        if result.done():
            break
    assert await result == 1
    assert len(newcomers) < 100
    assert time.monotonic() - started < 10
    await asyncio.gather(*newcomers, return_exceptions=True)


# The listening connection --------------------------------------------------------------------------------------


async def test_a_listener_that_dies_is_replaced(
    app: Fenceline, worker: Worker, no_polling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "RECONNECT_SECONDS", 0.05)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    pid = await listener(worker)
    await worker.connection.execute("select pg_terminate_backend($1, 5000)", pid)

    assert await listener(worker) != pid
    await asyncio.sleep(0.1)
    await worker.run(job, result="done")
    assert await result == "done"


async def test_what_ended_while_nobody_listened_is_found_after_the_reconnect(
    app: Fenceline, worker: Worker, no_polling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "RECONNECT_SECONDS", 0.3)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    await worker.connection.execute("select pg_terminate_backend($1, 5000)", await listener(worker))
    await worker.run(job, result="done")

    assert await result == "done"


async def test_polling_goes_on_while_there_is_no_listener(
    app: Fenceline, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "RECONNECT_SECONDS", NEVER)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    await worker.connection.execute("select pg_terminate_backend($1, 5000)", await listener(worker))
    await worker.run(job, result="done")

    assert await result == "done"
    assert await worker.connection.fetch(LISTENERS_SQL) == []


async def test_a_room_nobody_waits_in_gives_its_connection_back(
    app: Fenceline, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "LINGER_SECONDS", 0.0)
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", 0.1)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    await worker.run(job)
    await result
    async with asyncio.timeout(20):
        while await worker.connection.fetch(LISTENERS_SQL):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    another = await app.enqueue("work")
    result = start_waiting(another)
    await listener(worker)
    await worker.run(another, result=2)
    assert await result == 2


# A thousand ----------------------------------------------------------------------------------------------------


async def test_a_thousand_waiters_share_a_connection_and_few_statements(
    app: Fenceline, worker: Worker, statements: Counter[str]
) -> None:
    @app.job()
    async def work(n: int) -> int:
        raise NotImplementedError

    jobs = await work.enqueue_many({"n": n} for n in range(1000))
    results = [start_waiting(job, timeout=120) for job in jobs]
    await settle_in(worker)
    await asyncio.sleep(0.5)

    statements.clear()
    started = time.monotonic()
    await asyncio.sleep(3)
    rate = statements.total() / (time.monotonic() - started)
    assert 0 < rate < 5
    await listener(worker)
    in_use = await worker.connection.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'fenceline'"
    )
    assert in_use <= 2

    attempts = await worker.claim(limit=1000)
    await worker.connection.execute(
        "select fenceline.finish_attempts($1, $2, p_results => array_fill('7'::jsonb, array[1000]))",
        list(attempts),
        list(attempts.values()),
    )
    assert await asyncio.gather(*results) == [7] * 1000


# Not waiting for ever ------------------------------------------------------------------------------------------


async def test_a_timeout_leaves_nothing_behind(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await job.result(timeout=0.2)
    with pytest.raises(TimeoutError):
        await job.wait(timeout=0.2)
    assert 0.3 < time.monotonic() - started < 10
    assert app_parts(app).database()._waiter._waiting == {}

    await worker.run(job, result=1)
    assert await job.result(timeout=20) == 1


async def test_a_cancelled_waiter_leaves_the_others_alone(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    one, other = start_waiting(job), start_waiting(job)
    await settle_in(worker)
    one.cancel()
    await worker.run(job, result=1)

    assert await other == 1
    assert one.cancelled()


async def test_close_while_somebody_waits(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    await app.close()

    with pytest.raises(DatabaseUnavailable, match="closed while the job was awaited"):
        await result
    assert await worker.connection.fetch(LISTENERS_SQL) == []
    # And the app can be used again.
    await worker.run(job, result=1)
    assert await job.result(timeout=20) == 1


async def test_a_job_that_is_not_there(app: Fenceline) -> None:
    job = app.jobs.handle(format_id(12345))

    for wait in (job.wait, job.result):
        with pytest.raises(NotFound, match=re.escape(f"job {job.id} does not exist")):
            await wait(timeout=20)


async def test_a_job_that_is_deleted_while_it_is_awaited(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker)
    async with worker.connection.transaction():
        await worker.run(job)
        await worker.connection.execute("select fenceline.delete_job($1)", parse_id(job.id))

    with pytest.raises(NotFound):
        await result


async def test_blocking_waiters_share_too(app: Fenceline, worker: Worker, no_polling: None) -> None:
    jobs = [await asyncio.to_thread(app.sync.enqueue, "work") for _ in range(8)]
    results = [asyncio.create_task(asyncio.to_thread(job.result, 30)) for job in jobs]
    await settle_in(worker)
    for job in jobs:
        await worker.run(job, result=job.id)

    assert await asyncio.gather(*results) == [job.id for job in jobs]
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(app.sync.enqueue("work").wait, 0.1)
