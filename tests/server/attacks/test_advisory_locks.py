"""Whoever may connect can keep any advisory lock for ever. That must not stop more than the one thing it is about."""

import asyncio
import time

import asyncpg
import pytest
from tests.conftest import Connect
from tests.support.figures import Figures
from tests.support.patience import eventually
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline
from fenceline.doctor.examine import examine
from fenceline.doctor.finding import Limits

LANE, KEY, LOCK = 1179926085, 1179926086, 1179926088
KEEP = "select pg_advisory_lock($1, $2)"
OF_LANE = "select hashtext($1)"
WAITING = f"""select count(*) from pg_locks where locktype = 'advisory' and classid = {LOCK} and not granted
    and database = (select oid from pg_database where datname = current_database())"""
#: What a statement may wait for a lock, generously: without a bound it would be for ever.
SOON_SECONDS = 20


async def keep(connect: Connect, lock_class: int, number: int) -> "asyncpg.Connection[asyncpg.Record]":
    attacker = await connect()
    await attacker.execute(KEEP, lock_class, number)
    return attacker


async def test_a_lane_that_is_kept_does_not_stop_the_others(database: str, connect: Connect) -> None:
    app = Fenceline(database)
    connection = await connect()
    for name, settings in (("shared", "{}"), ("alone", '{"slots": 1}')):  # locked by claims together, or by each
        await connection.execute("select fenceline.set_lane($1, $2)", name, settings)

    @app.job()
    async def work() -> str:
        return "done"

    attackers = [await keep(connect, LANE, await connection.fetchval(OF_LANE, name)) for name in ("shared", "alone")]
    async with running(app):
        stuck = [await app.enqueue("work", lane=name) for name in ("shared", "alone")]
        free = await app.enqueue("work")
        assert (await ended(free)).status == "succeeded"
        for attacker in attackers:
            await attacker.execute("select pg_advisory_unlock_all()")
        for job in stuck:
            assert (await ended(job)).status == "succeeded"  # and nothing is lost


async def test_a_key_that_is_kept_does_not_stop_claims(connect: Connect) -> None:
    connection = await connect()
    number = await connection.fetchval("select fenceline.key_lock('default', 'k')")
    attacker = await keep(connect, KEY, number)
    worker = await connection.fetchval("select fenceline.register_worker('w', 3600)")
    await connection.execute("""select fenceline.enqueue('keyed', '{}', '{"key": "k"}')""")
    await connection.execute("select fenceline.enqueue('free')")
    claim = "select kind from fenceline.claim_jobs($1, 'default', 10)"
    assert [row["kind"] for row in await connection.fetch(claim, worker)] == ["free"]
    await attacker.execute("select pg_advisory_unlock_all()")

    async def is_claimed() -> bool:
        await connection.execute("select fenceline.maintain()")
        return bool(await connection.fetch(claim, worker))

    await eventually(is_claimed, "the job with the key")


async def test_locks_of_handlers_are_asked_for_again(database: str, connect: Connect) -> None:
    app = Fenceline(database)

    @app.job()
    async def locked(ctx: Context) -> str:
        async with ctx.lock("table", "orders"):
            await asyncio.sleep(0.1)  # both want it meanwhile
        return "done"

    connection = await connect()
    attacker = await keep(connect, LOCK, await connection.fetchval(OF_LANE, "default"))
    async with running(app):
        jobs = [await app.enqueue("locked") for _ in range(2)]
        await eventually(lambda: connection.fetchval(WAITING), "one of them has found the lock kept")
        await attacker.execute("select pg_advisory_unlock_all()")
        for job in jobs:
            assert (await ended(job)).status == "succeeded"


async def be_told(connect: Connect) -> float:
    """After how many seconds."""
    connection = await connect()
    await keep(connect, LANE, await connection.fetchval(OF_LANE, "default"))
    began = time.monotonic()
    with pytest.raises(asyncpg.LockNotAvailableError):
        await connection.execute("""select fenceline.set_lane('default', '{"slots": 1}')""")
    return time.monotonic() - began


async def test_operators_are_told_instead_of_waiting(connect: Connect) -> None:
    await be_told(connect)


@pytest.mark.timing
async def test_operators_are_told_soon(connect: Connect, figures: Figures) -> None:
    figures.at_most("operators are told of a kept lock after", await be_told(connect), SOON_SECONDS)


async def test_doctor_says_who_it_is(connect: Connect) -> None:
    connection = await connect()
    attacker = await keep(connect, LANE, await connection.fetchval(OF_LANE, "default"))
    pid = await attacker.fetchval("select pg_backend_pid()")
    found = [f for f in await examine(connection, Limits(patience_seconds=0.0)) if f.check == "advisory_lock"]
    assert [finding.subject for finding in found] == [f"pid {pid}"]
    assert "claims of a lane" in found[0].what
    assert f"pg_terminate_backend({pid})" in found[0].do
    await attacker.execute("select pg_advisory_unlock_all()")
    after = await examine(connection, Limits(patience_seconds=0.0))
    assert "advisory_lock" not in {finding.check for finding in after}
