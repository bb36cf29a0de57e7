"""Waiting for a job's end: told at once, polling as the truth, a thousand waiters on one connection."""

import asyncio
import itertools
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from tests.client.conftest import Worker
from tests.support.figures import Figures
from tests.support.patience import eventually, seconds_left

from fenceline import DatabaseUnavailable, Fenceline, Job, NotFound, Status
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
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

    async def listening() -> list[int]:
        return [row["pid"] for row in await worker.connection.fetch(LISTENERS_SQL)]

    [pid] = await eventually(listening, "somebody listens")
    return int(pid)


async def nobody_listens(worker: Worker) -> None:
    async def is_closed() -> bool:
        return not await worker.connection.fetch(LISTENERS_SQL)

    await eventually(is_closed, "the connection that listened is closed")


@dataclass
class Traffic:
    """The statements of the client: how many are under way, how many have ended, and when the last one did."""

    under_way: int = 0
    ended: int = 0
    last: float = 0.0


@pytest.fixture(autouse=True)
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    seen = Traffic(last=time.monotonic())
    real = Database.call

    async def note(self: Database, call: Call[Any], connection: Any = None) -> Any:
        seen.under_way += 1
        try:
            return await real(self, call, connection)
        finally:
            seen.under_way -= 1
            seen.ended += 1
            seen.last = time.monotonic()

    monkeypatch.setattr(Database, "call", note)
    return seen


async def settle_in(worker: Worker, traffic: Traffic) -> None:
    """Let a waiting room get past its first looks: it has fallen silent, or does nothing but poll."""
    await listener(worker)
    traffic.last = time.monotonic()  # it listens, and now looks at what it may have missed
    before = traffic.ended

    async def is_settled() -> bool:
        is_silent = time.monotonic() - traffic.last > 2 * outcome_waiter.SECOND_LOOK_SECONDS
        return (is_silent and not traffic.under_way) or traffic.ended >= before + 5

    await eventually(is_settled, "the waiting room has settled in")


def start_waiting(job: Job[Any], timeout: float | None = None) -> "asyncio.Task[Any]":
    return asyncio.create_task(job.result(timeout=seconds_left() if timeout is None else timeout))


async def test_a_notification_brings_the_result_at_once(
    app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None, statements: Counter[str]
) -> None:
    """At once: without polling there is no other way."""
    await hear_of_the_end(app, worker, traffic, statements)


@pytest.mark.timing
async def test_how_soon_a_notification_brings_the_result(  # noqa: PLR0917 - fixtures
    app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None, statements: Counter[str], figures: Figures
) -> None:
    took = await hear_of_the_end(app, worker, traffic, statements)
    figures.at_most("a result is there after its job was claimed", took, 5)


async def hear_of_the_end(app: Fenceline, worker: Worker, traffic: Traffic, statements: Counter[str]) -> float:
    """The seconds from the job's claim until its result is there."""
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    statements.clear()

    started = time.monotonic()
    await worker.run(job, result="done")
    assert await result == "done"
    took = time.monotonic() - started
    assert statements == {"outcomes": 1}, "and it took one look"
    return took


async def test_a_notification_names_many_jobs(
    app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None
) -> None:
    @app.job()
    async def work(n: int) -> int:
        raise NotImplementedError

    jobs = await work.enqueue_many({"n": n} for n in range(700))
    results = [start_waiting(job) for job in jobs]
    await settle_in(worker, traffic)
    attempts = await worker.claim(limit=700)
    await worker.connection.execute(
        "select fenceline.finish_attempts($1, $2, p_results => array_fill('7'::jsonb, array[700]))",
        list(attempts),
        list(attempts.values()),
    )

    assert await asyncio.gather(*results) == [7] * 700


async def test_polling_alone_is_enough(
    app: Fenceline, worker: Worker, traffic: Traffic, statements: Counter[str]
) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    # Nobody is known to watch, so nobody is notified.
    await worker.connection.execute("delete from fenceline.watch")
    await worker.run(job, result="done")

    assert await result == "done"


async def test_jobs_that_have_ended_before(app: Fenceline, worker: Worker, no_polling: None) -> None:
    job = await app.enqueue("work")
    await worker.run(job, result=1)

    assert await job.result(timeout=seconds_left()) == 1
    assert await job.wait(timeout=seconds_left()) is Status.SUCCEEDED


async def test_many_waiters_for_one_job(
    app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None, statements: Counter[str]
) -> None:
    job = await app.enqueue("work")
    results = [start_waiting(job) for _ in range(50)]
    await settle_in(worker, traffic)
    assert statements["watch_jobs"] == 1

    await worker.run(job, result=1)
    assert await asyncio.gather(*results) == [1] * 50


async def test_the_watch_is_renewed(
    app: Fenceline, worker: Worker, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "WATCH_SECONDS", 0.4)
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", 0.1)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    await worker.connection.execute("delete from fenceline.watch")

    async def watched() -> bool:
        return bool(await worker.connection.fetchval("select count(*) from fenceline.watch"))

    await eventually(watched, "the watch is renewed")

    await worker.run(job, result=1)
    assert await result == 1


async def test_newcomers_do_not_keep_the_room_from_polling(
    app: Fenceline, worker: Worker, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", 0.3)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    attempt_id = await worker.start(job)
    others = [(await app.enqueue("work")) for _ in range(100)]
    await worker.connection.execute("delete from fenceline.watch")
    await worker.finish(parse_id(job.id), attempt_id, result=1)

    newcomers = []
    coming = itertools.cycle(others)  # each has left long before its turn comes again

    async def ended_while_they_come() -> bool:
        newcomers.append(start_waiting(next(coming), timeout=0.1))
        return result.done()

    try:
        await eventually(ended_while_they_come, "the room has polled", lambda: f"{len(newcomers)} newcomers")
    finally:
        await asyncio.gather(*newcomers, return_exceptions=True)
    assert await result == 1


# The listening connection --------------------------------------------------------------------------------------


async def test_a_listener_that_dies_is_replaced(
    app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "RECONNECT_SECONDS", 0.05)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    pid = await listener(worker)
    await worker.connection.execute("select pg_terminate_backend($1, 5000)", pid)

    assert await listener(worker) != pid
    await settle_in(worker, traffic)
    await worker.run(job, result="done")
    assert await result == "done"


async def test_what_ended_while_nobody_listened_is_found_after_the_reconnect(
    app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "RECONNECT_SECONDS", 0.3)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    await worker.connection.execute("select pg_terminate_backend($1, 5000)", await listener(worker))
    await worker.run(job, result="done")

    assert await result == "done"


async def test_polling_goes_on_while_there_is_no_listener(
    app: Fenceline, worker: Worker, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "RECONNECT_SECONDS", NEVER)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    await worker.connection.execute("select pg_terminate_backend($1, 5000)", await listener(worker))
    await worker.run(job, result="done")

    assert await result == "done"
    assert await worker.connection.fetch(LISTENERS_SQL) == []


async def test_a_room_nobody_waits_in_gives_its_connection_back(
    app: Fenceline, worker: Worker, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_waiter, "LINGER_SECONDS", 0.0)
    monkeypatch.setattr(outcome_waiter, "POLL_SECONDS", 0.1)
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    await worker.run(job)
    await result
    await nobody_listens(worker)

    another = await app.enqueue("work")
    result = start_waiting(another)
    await listener(worker)
    await worker.run(another, result=2)
    assert await result == 2


# A thousand ----------------------------------------------------------------------------------------------------


async def test_a_thousand_waiters_share_a_connection_and_few_statements(
    app: Fenceline, worker: Worker, traffic: Traffic, statements: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_for_a_thousand(app, worker, traffic, statements, monkeypatch, polls=1)


@pytest.mark.timing
async def test_how_many_statements_a_thousand_waiters_cost(  # noqa: PLR0917 - fixtures
    app: Fenceline,
    worker: Worker,
    traffic: Traffic,
    statements: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    figures: Figures,
) -> None:
    rate = await wait_for_a_thousand(app, worker, traffic, statements, monkeypatch, polls=4)
    figures.at_most("statements of 1000 waiters", rate, 5, "per s")


async def wait_for_a_thousand(
    app: Fenceline,
    worker: Worker,
    traffic: Traffic,
    statements: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    polls: int,
) -> float:
    """The statements per second while nothing happens but so many polls."""

    @app.job()
    async def work(n: int) -> int:
        raise NotImplementedError

    jobs = await work.enqueue_many({"n": n} for n in range(1000))
    asked: list[int] = []
    outcomes = calls.jobs.outcomes

    def noted(job_ids: list[int]) -> Call[Any]:
        asked.append(len(job_ids))
        return outcomes(job_ids)

    monkeypatch.setattr(calls.jobs, "outcomes", noted)
    results = [start_waiting(job) for job in jobs]
    await settle_in(worker, traffic)

    statements.clear()
    asked.clear()
    started = time.monotonic()

    async def has_polled() -> bool:
        return len(asked) >= polls

    await eventually(has_polled, f"{polls} polls", lambda: asked)
    rate = statements.total() / (time.monotonic() - started)
    assert set(asked) == {1000}, "a poll asks about all of them in one statement"
    assert set(statements) <= {"outcomes", "watch_jobs"}
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
    return rate


# Not waiting for ever ------------------------------------------------------------------------------------------


async def test_a_timeout_leaves_nothing_behind(app: Fenceline, worker: Worker) -> None:
    await time_out(app, worker)


@pytest.mark.timing
async def test_how_exact_timeouts_are(app: Fenceline, worker: Worker, figures: Figures) -> None:
    figures.at_most("two timeouts of 0.2 s, with a new connection", await time_out(app, worker), 10)


async def time_out(app: Fenceline, worker: Worker) -> float:
    """How long two timeouts of 0.2 s take."""
    job = await app.enqueue("work")

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await job.result(timeout=0.2)
    with pytest.raises(TimeoutError):
        await job.wait(timeout=0.2)
    took = time.monotonic() - started
    assert took > 0.3
    assert app_parts(app).database()._waiter._waiting == {}

    await worker.run(job, result=1)
    assert await job.result(timeout=seconds_left()) == 1
    return took


async def test_a_cancelled_waiter_leaves_the_others_alone(app: Fenceline, worker: Worker, traffic: Traffic) -> None:
    job = await app.enqueue("work")
    one, other = start_waiting(job), start_waiting(job)
    await settle_in(worker, traffic)
    one.cancel()
    await worker.run(job, result=1)

    assert await other == 1
    assert one.cancelled()


async def test_close_while_somebody_waits(app: Fenceline, worker: Worker, traffic: Traffic) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    await app.close()

    with pytest.raises(DatabaseUnavailable, match="closed while the job was awaited"):
        await result
    await nobody_listens(worker)
    # And the app can be used again.
    await worker.run(job, result=1)
    assert await job.result(timeout=seconds_left()) == 1


async def test_a_job_that_is_not_there(app: Fenceline) -> None:
    job = app.jobs.handle(format_id(12345))

    for wait in (job.wait, job.result):
        with pytest.raises(NotFound, match=re.escape(f"job {job.id} does not exist")):
            await wait(timeout=seconds_left())


async def test_a_job_that_is_deleted_while_it_is_awaited(app: Fenceline, worker: Worker, traffic: Traffic) -> None:
    job = await app.enqueue("work")
    result = start_waiting(job)
    await settle_in(worker, traffic)
    async with worker.connection.transaction():
        await worker.run(job)
        await worker.connection.execute("select fenceline.delete_job($1)", parse_id(job.id))

    with pytest.raises(NotFound):
        await result


async def test_blocking_waiters_share_too(app: Fenceline, worker: Worker, traffic: Traffic, no_polling: None) -> None:
    jobs = [await asyncio.to_thread(app.sync.enqueue, "work") for _ in range(8)]
    results = [asyncio.create_task(asyncio.to_thread(job.result, seconds_left())) for job in jobs]
    await settle_in(worker, traffic)
    for job in jobs:
        await worker.run(job, result=job.id)

    assert await asyncio.gather(*results) == [job.id for job in jobs]
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(app.sync.enqueue("work").wait, 0.1)
