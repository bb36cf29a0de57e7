"""Whoever may connect to the database can send any notification: it is a hint, and a flood of them costs little."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, running, until_running

from fenceline import Context, Fenceline
from fenceline.database import calls
from fenceline.model.public_id import parse_id
from fenceline.server.lane_wakeups import ReadyLanes

#: So many notifications are sent at least; without a brake each of them is a statement.
FLOOD = 400


def most_statements(seconds: float) -> float:
    """What they may cost in that time: ten that are free and four a second, in two lanes, and what is done anyway."""
    return 40 + 10 * seconds


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], Counter[str]]:
    """Count how often a call is made."""
    made: Counter[str] = Counter()

    def count(module: Any, name: str) -> Counter[str]:
        make = getattr(module, name)

        def counting(*args: Any, **options: Any) -> Any:
            made[name] += 1
            return make(*args, **options)

        monkeypatch.setattr(module, name, counting)
        return made

    return count


async def flood(connection: "asyncpg.Connection[Any]", channel: str, payload: str) -> float:
    """How many seconds it took: there were many more notifications than they may cost statements in that time."""
    began, sent = time.monotonic(), 0
    while sent < FLOOD or sent < 4 * most_statements(time.monotonic() - began):
        await connection.execute("select pg_notify($1, $2)", channel, payload)
        await asyncio.sleep(0.002)
        sent += 1
    return time.monotonic() - began


async def test_a_forged_cancel_does_not_end_a_job(app: Fenceline, connect: Connect) -> None:
    may_end = asyncio.Event()

    @app.job()
    async def precious(ctx: Context) -> str:
        await may_end.wait()
        ctx.raise_if_cancelled()
        return "done"

    @app.job()
    async def other() -> None:
        await asyncio.sleep(3600)

    attacker = await connect()
    async with running(app):
        job, cancelled = await app.enqueue("precious"), await app.enqueue("other")
        await until_running(job)
        await until_running(cancelled)
        attempt = await attacker.fetchrow(
            "select worker_id, attempt_id from fenceline.running where job_id = $1", parse_id(job.id)
        )
        assert attempt is not None
        for payload in (f"{attempt['worker_id']}/{attempt['attempt_id']}", f"{attempt['worker_id']}/nonsense", "/", ""):
            await attacker.execute("select pg_notify('fenceline_cancel', $1)", payload)
        # Notifications come in the order of their commits: when the true one has worked, the forged have been heard.
        await cancelled.cancel()
        assert (await ended(cancelled)).status == "cancelled"
        may_end.set()
        record = await ended(job)
        assert (record.status, record.result, record.attempt) == ("succeeded", "done", 1)


async def test_a_true_cancel_is_heard_at_once(app: Fenceline) -> None:
    @app.job()
    async def slow() -> None:
        await asyncio.sleep(3600)

    async with running(app, lease_seconds=3600.0):  # so that no heartbeat can be what brings the word
        job = await app.enqueue("slow")
        await until_running(job)
        await job.cancel()
        assert (await ended(job)).status == "cancelled"


async def test_a_flood_of_cancels_is_one_question_at_a_time(
    app: Fenceline, connect: Connect, counted: Callable[[Any, str], Counter[str]]
) -> None:
    may_end = asyncio.Event()

    @app.job()
    async def precious(ctx: Context) -> None:
        await may_end.wait()
        ctx.raise_if_cancelled()

    attacker = await connect()
    made = counted(calls.attempts, "check_attempts")
    async with running(app, lease_seconds=3600.0):
        job = await app.enqueue("precious")
        await until_running(job)
        worker, attempt = (await attacker.fetch("select worker_id, attempt_id from fenceline.running"))[0]
        seconds = await flood(attacker, "fenceline_cancel", f"{worker}/{attempt}")
        asked = made["check_attempts"]
        await flood(attacker, "fenceline_cancel", f"{worker}/{uuid4()}")  # of nobody: no question at all
        may_end.set()
        assert (await ended(job)).status == "succeeded"
    assert 0 < asked <= seconds / 0.05 + 2
    assert made["check_attempts"] <= asked + 1  # what was under way


@pytest.mark.parametrize("lane", ["default", "elsewhere"])
async def test_a_flood_of_wake_ups_is_followed_ever_more_slowly(
    app: Fenceline, connect: Connect, counted: Callable[[Any, str], Counter[str]], lane: str
) -> None:
    @app.job()
    async def quick() -> str:
        return "done"

    attacker = await connect()
    made = counted(calls.attempts, "claim_jobs")
    counted(calls.lanes, "worker_lanes")
    async with running(app):
        assert (await ended(await app.enqueue("quick"))).status == "succeeded"
        made.clear()
        most = most_statements(await flood(attacker, "fenceline_ready", lane))
        assert made["claim_jobs"] <= most, made
        assert made["worker_lanes"] <= most, made
        # And jobs go on.
        assert (await ended(await app.enqueue("quick"))).status == "succeeded"


async def test_a_flood_of_ends_is_followed_ever_more_slowly(
    app: Fenceline, connect: Connect, counted: Callable[[Any, str], Counter[str]]
) -> None:
    made = counted(calls.jobs, "outcomes")
    attacker = await connect()
    async with app:
        job = await app.enqueue("nobody_runs_this")
        waiting = asyncio.create_task(job.wait(seconds_left()))
        seconds = await flood(attacker, "fenceline_ended", f"{parse_id(job.id)},x")
        assert not waiting.done()
        assert made["outcomes"] <= most_statements(seconds), made
        await job.cancel()
        assert await waiting == "cancelled"


async def test_a_flood_of_wake_ups_for_a_runner_is_followed_ever_more_slowly(
    as_role: AsRole, api: Any, counted: Callable[[Any, str], Counter[str]]
) -> None:
    made = counted(calls.lanes, "runner_lanes")
    runner = await as_role("runner")
    runner_id = (await runner.post("/v1/runners", json={"name": "far"})).json()["id"]
    ready: ReadyLanes = api.state.server.ready
    began = time.monotonic()
    claim = asyncio.create_task(runner.post("/v1/jobs/claim", json={"runner_id": runner_id, "wait": 1.5}))
    while not claim.done():
        ready.on_notify("default")
        await asyncio.sleep(0.002)
    assert (await claim).json()["attempts"] == []
    assert made["runner_lanes"] <= most_statements(time.monotonic() - began), made
