"""`app.lock`: the locks of handlers for code outside them, kept by a lease while the block runs."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest
from tests.conftest import Connect
from tests.context.test_locks import Room
from tests.support.patience import eventually, seconds_left
from tests.worker.in_process_worker import running, until_running

from fenceline import Context, Fenceline, LockCycle, LockLost, LockTimeout, SyncContext
from fenceline.errors import InvalidName, InvalidOption
from fenceline.runtime import lock_keeper

#: Seconds of a lease that no test gets near to, however slow the machine is.
LONG = 600.0

HOLD = """
import os, sys, time
from fenceline import Fenceline

app = Fenceline(sys.argv[1], actor="other program")
with app.sync.lock("edition", 1, lease_seconds=float(sys.argv[2])):
    print(os.getpid(), flush=True)
    time.sleep(3600)
"""

#: Somebody else does.
TAKE = "select fenceline.take_outside_lock('default', 'edition', '1', gen_random_uuid(), '{}', 60, 'heir')"


@pytest.fixture
async def app(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database) as app:
        yield app
        await asyncio.to_thread(app.sync.close)


@contextmanager
def another_program(dsn: str, lease_seconds: float) -> Iterator[int]:
    """A process that holds the lock edition 1 until it is killed; its pid."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, dsn, str(lease_seconds)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


async def test_one_at_a_time_with_handlers_async_and_blocking(app: Fenceline) -> None:
    room = Room()

    @app.job
    async def on_loop(ctx: Context, lock: int) -> None:
        async with ctx.lock("edition", lock):
            room.enter(lock)
            await asyncio.sleep(0.005)
            room.leave(lock)

    @app.job
    def in_thread(ctx: SyncContext, lock: int) -> None:
        with ctx.lock("edition", lock):
            room.enter(lock)
            time.sleep(0.005)
            room.leave(lock)

    async def outside(lock: int) -> None:
        async with app.lock("edition", lock):
            room.enter(lock)
            await asyncio.sleep(0.005)
            room.leave(lock)

    def outside_blocking(lock: int) -> None:
        with app.sync.lock("edition", lock):
            room.enter(lock)
            time.sleep(0.005)
            room.leave(lock)

    async with running(app):
        jobs = [await kind.enqueue(lock=lock) for kind in (on_loop, in_thread) for lock in (1, 2, 1, 2)]
        await asyncio.gather(
            *(outside(lock) for lock in (1, 2, 1, 2)),
            *(asyncio.to_thread(outside_blocking, lock) for lock in (1, 2, 1, 2)),
        )
        for job in jobs:
            assert await job.wait(seconds_left()) == "succeeded"
        assert await app.system.locks() == []
    assert sorted(room.entered) == [1] * 8 + [2] * 8
    assert set(room.most.values()) == {1}


async def test_a_job_waits_for_code_outside_and_the_other_way_round(app: Fenceline) -> None:
    let_go = asyncio.Event()

    @app.job
    async def edit(ctx: Context) -> str:
        async with ctx.lock("edition", 1):
            await let_go.wait()
            return "edited"

    async with running(app):
        async with app.lock("edition", 1, lease_seconds=LONG) as lock:
            job = await edit.enqueue()
            await until_running(job)

            async def waits() -> bool:
                return (await job.get()).waiting_for == "lock edition/1"

            await eventually(waits, "the job waits")
            held, waiting = await app.system.locks()
            assert (held.job, held.held, waiting.job, waiting.holder_actor) == (None, True, job.id, held.actor)
            assert f"code outside jobs ({held.actor})" in (await job.explain()).text
            assert not lock.lost

        async def has_it() -> bool:
            return [found.job for found in await app.system.locks()] == [job.id]

        await eventually(has_it, "the job has the lock")
        with pytest.raises(
            LockTimeout, match=r"lock edition '1' could not be taken within 0 s: `fenceline locks` shows"
        ):
            async with app.lock("edition", 1, timeout=0):
                raise AssertionError("never")
        with pytest.raises(LockTimeout):
            await asyncio.to_thread(hold_blocking, app, timeout=0.1)
        assert [found.job for found in await app.system.locks()] == [job.id], "who gives up leaves the line"
        let_go.set()
        async with app.lock("edition", 1, timeout=seconds_left()) as lock:
            assert await job.result(seconds_left()) == "edited"
            assert lock.token > 0


def hold_blocking(app: Fenceline, *, timeout: float | None = None) -> int:
    with app.sync.lock("edition", 1, timeout=timeout) as lock:
        return lock.token


async def test_it_is_kept_as_long_as_the_block_lasts(
    app: Fenceline, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that no machine is too slow for, and that is renewed again and again all the same."""
    monkeypatch.setattr(lock_keeper, "RENEW_AT", 0.1 / LONG)
    done = threading.Event()

    async def stay() -> None:
        async with app.lock("edition", 1, lease_seconds=LONG) as lock:
            await asyncio.to_thread(done.wait, seconds_left())
            lock.raise_if_lost()

    def stay_blocking() -> None:
        with app.sync.lock("edition", 2, lease_seconds=LONG) as lock:
            done.wait(seconds_left())
            lock.raise_if_lost()

    connection = await connect()
    ends: list[list[Any]] = [[], []]

    async def renewed_twice() -> bool:
        rows = await connection.fetch("select lease_until from fenceline.lock_lease order by owner")
        if len(rows) == 2:
            for seen, row in zip(ends, rows, strict=True):
                seen.extend([row["lease_until"]] if row["lease_until"] not in seen else [])
        return all(len(seen) >= 3 for seen in ends)

    staying = [asyncio.create_task(stay()), asyncio.create_task(asyncio.to_thread(stay_blocking))]
    try:
        await eventually(renewed_twice, "both leases are renewed twice", lambda: ends)
        assert all(seen == sorted(seen) for seen in ends), "each time for longer"
        for name in (1, 2):
            with pytest.raises(LockTimeout):
                await pass_through(app, name, timeout=0.1)
    finally:
        done.set()
        await asyncio.gather(*staying)


async def pass_through(app: Fenceline, name: int, timeout: float | None = None) -> int:
    async with app.lock("edition", name, timeout=timeout) as lock:
        return lock.token


async def take_away(connection: "asyncpg.Connection[asyncpg.Record]") -> int:
    """As if nothing had been heard of the holder until its lease was over: somebody else has it now."""
    async with connection.transaction():
        await connection.execute("update fenceline.lock_lease set lease_until = now() - interval '1 s'")
        token = await connection.fetchval(TAKE)
    assert isinstance(token, int)
    return token


async def test_whoever_lost_it_is_told_while_the_block_runs(
    app: Fenceline, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a renewal that is refused, and not by the end of the lease as this process sees it."""
    monkeypatch.setattr(lock_keeper, "RENEW_AT", 0.1 / LONG)
    connection = await connect()

    async def lose() -> None:
        async with app.lock("edition", 1, lease_seconds=LONG) as lock:
            assert await take_away(connection) > lock.token

            async def is_lost() -> bool:
                return lock.lost

            await eventually(is_lost, "the block is told")
            lock.raise_if_lost()

    with pytest.raises(LockLost, match="lock edition '1' was lost"):
        await lose()
    assert [lock.actor for lock in await app.system.locks()] == ["heir"]


async def test_the_end_of_a_lost_block_leaves_the_next_its_lock(app: Fenceline, connect: Connect) -> None:
    connection = await connect()

    async def lose() -> None:
        async with app.lock("edition", 1):
            await take_away(connection)

    with pytest.raises(LockLost):
        await lose()
    assert [lock.actor for lock in await app.system.locks()] == ["heir"]


async def test_what_the_block_raises_is_raised(app: Fenceline) -> None:
    with pytest.raises(ZeroDivisionError):
        async with app.lock("edition", 1):
            _ = 1 / 0
    assert await app.system.locks() == []


async def test_a_wait_that_is_cancelled_leaves_the_line(app: Fenceline, connect: Connect) -> None:
    assert await (await connect()).fetchval(TAKE)
    waiting = asyncio.create_task(pass_through(app, 1))

    async def in_line() -> bool:
        return len(await app.system.locks()) == 2

    await eventually(in_line, "it waits in line")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [lock.held for lock in await app.system.locks()] == [True]


async def test_a_killed_process_holds_it_no_longer_than_its_lease(app: Fenceline, connect: Connect) -> None:
    """No worker or server is there: whoever waits finds out."""
    connection = await connect()
    end = "select lease_until from fenceline.lock_lease where actor = 'other program'"
    with another_program(await app.dsn(), 6) as pid:
        first = await connection.fetchval(end)

        async def is_renewed() -> bool:
            return bool(await connection.fetchval(end) > first)

        await eventually(is_renewed, "it is kept alive")
        with pytest.raises(LockTimeout):
            async with app.lock("edition", 1, timeout=0.1):
                raise AssertionError("never: it is kept alive")
        assert [lock.actor for lock in await app.system.locks()] == ["other program"]
        os.kill(pid, signal.SIGKILL)
        last = await connection.fetchval(end)
        async with app.lock("edition", 1, timeout=seconds_left(), lease_seconds=LONG) as lock:
            assert not lock.lost
            assert await connection.fetchval("select clock_timestamp()") >= last, "not before its lease was over"


async def test_open_transactions_do_not_hold_it_up(app: Fenceline, connect: Connect) -> None:
    connection, heir = await connect(), await connect()
    async with connection.transaction():
        await app.enqueue("work", {}, connection=connection)
        await connection.execute("select pg_current_xact_id(), * from fenceline.lock_lease, fenceline.attempt_lock")
        first = await pass_through(app, 1, timeout=seconds_left())
        async with app.lock("edition", 1):
            await heir.execute("update fenceline.lock_lease set lease_until = now() + interval '1 hour'")
        assert await pass_through(app, 1, timeout=seconds_left()) > first


async def test_waits_that_go_round_are_refused(app: Fenceline) -> None:
    async with app.lock("edition", 1):
        with pytest.raises(LockCycle, match="would wait for itself"):
            async with app.lock("edition", 1):
                raise AssertionError("never")
    with (
        app.sync.lock("edition", 1),
        pytest.raises(LockCycle, match="would wait for itself"),
        app.sync.lock("edition", 1),
    ):
        raise AssertionError("never")


async def test_bad_input_is_told(app: Fenceline) -> None:
    for namespace, name, error in (
        ("No Such", 1, InvalidName),
        ("edition", "", InvalidOption),
        ("edition", None, InvalidOption),
        ("edition", True, InvalidOption),
        ("edition", 1.5, InvalidOption),
    ):
        with pytest.raises(error, match="lock"):
            async with app.lock(namespace, name):  # type: ignore[arg-type]  # wrong on purpose
                raise AssertionError("never")
    for options in ({"timeout": -1}, {"timeout": float("nan")}, {"lease_seconds": 0}, {"tenant": "No Such"}):
        with pytest.raises((InvalidOption, InvalidName), match=next(iter(options))):
            async with app.lock("edition", 1, **options):
                raise AssertionError("never")
        with pytest.raises((InvalidOption, InvalidName)), app.sync.lock("edition", 1, **options):
            raise AssertionError("never")
