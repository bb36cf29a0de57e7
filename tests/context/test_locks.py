"""`ctx.lock` in a worker of this process: one at a time, in turn, and never for ever."""

import asyncio
import inspect
import threading
import time
from collections import Counter
from typing import Any

import pytest
from tests.support.patience import come, eventually, seconds_left
from tests.worker.in_process_worker import ended, running, until_running

from fenceline import Context, Fenceline, LockCycle, Retry, SyncContext
from fenceline.errors import InvalidName, InvalidOption

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


class Room:
    """Who is inside, by lock; fails when two are."""

    def __init__(self) -> None:
        self.inside: Counter[int] = Counter()
        self.most: Counter[int] = Counter()
        self.entered: list[int] = []
        self._guard = threading.Lock()

    def enter(self, lock: int) -> None:
        with self._guard:
            self.inside[lock] += 1
            self.most[lock] = max(self.most[lock], self.inside[lock])
            self.entered.append(lock)

    def leave(self, lock: int) -> None:
        with self._guard:
            self.inside[lock] -= 1


async def test_one_at_a_time_in_async_and_blocking_handlers(app: Fenceline) -> None:
    room = Room()
    together = asyncio.Event()

    @app.job()
    async def on_loop(ctx: Context, lock: int) -> None:
        async with ctx.lock("edition", lock):
            room.enter(lock)
            if sum(room.inside.values()) > 1:
                together.set()
            await together.wait()  # different locks do not hold each other up: it comes while this one is held
            await asyncio.sleep(0.005)
            room.leave(lock)

    @app.job()
    def in_thread(ctx: SyncContext, lock: int) -> None:
        with ctx.lock("edition", lock):
            room.enter(lock)
            time.sleep(0.005)
            room.leave(lock)

    async with running(app):
        jobs = await on_loop.enqueue_many([{"lock": n % 3} for n in range(45)])
        jobs += await in_thread.enqueue_many([{"lock": n % 3} for n in range(15)])
        for job in jobs:
            assert await job.wait(seconds_left()) == "succeeded"
        assert await app.system.locks() == []
    assert len(room.entered) == 60
    assert set(room.most.values()) == {1}


async def test_siblings_in_one_job_wait_for_nothing_but_their_own_lock(app: Fenceline) -> None:
    """Two jobs take the same locks in opposite order, but each in a coroutine of its own: no cycle."""
    met = asyncio.Barrier(2)

    @app.job(retry=ONCE)
    async def several(ctx: Context, first: str, then: str) -> list[str]:
        taken = []

        async def hold(name: str, *, meet: bool) -> None:
            async with ctx.lock("edition", name):
                taken.append(name)
                if meet:
                    await met.wait()
                await asyncio.sleep(0.05)

        await asyncio.gather(hold(first, meet=True), hold(then, meet=False), hold(f"{first}/own", meet=False))
        return sorted(taken)

    async with running(app):
        jobs = [
            await several.enqueue(first="a", then="b"),
            await several.enqueue(first="b", then="a"),
        ]
        assert await jobs[0].result(seconds_left()) == ["a", "a/own", "b"]
        assert await jobs[1].result(seconds_left()) == ["a", "b", "b/own"]


async def test_nested_locks_and_a_task_that_outlives_its_block(app: Fenceline) -> None:
    @app.job(retry=ONCE)
    async def nested(ctx: Context) -> str:
        async def later() -> str:
            await ended_block.wait()
            async with ctx.lock("edition", "outer"):
                return "taken again"

        ended_block = asyncio.Event()
        async with ctx.lock("edition", "outer"), ctx.lock("edition", "inner"):
            task = asyncio.create_task(later())
        ended_block.set()
        return await task

    async with running(app):
        assert await (await nested.enqueue()).result(seconds_left()) == "taken again"


@pytest.mark.parametrize("size", [2, 3])
async def test_a_cycle_of_waits_ends_in_an_error_and_the_others_go_on(app: Fenceline, size: int) -> None:
    met = asyncio.Barrier(size)

    @app.job(retry=ONCE)
    async def link(ctx: Context, number: int) -> str:
        async with ctx.lock("link", number):
            await met.wait()
            async with ctx.lock("link", (number + 1) % size):
                return "went on"

    async with running(app):
        jobs = await link.enqueue_many([{"number": number} for number in range(size)])
        records = [await ended(job) for job in jobs]
    refused = [record for record in records if record.status == "failed"]
    assert len(refused) == 1, "one gives way, the others go on"
    assert refused[0].error is not None
    assert refused[0].error["code"] == "lock_cycle"
    assert "would wait for ever" in refused[0].error["message"]
    assert "same order everywhere" in refused[0].error["message"]


async def test_a_lock_is_not_its_own(app: Fenceline) -> None:
    caught: list[LockCycle] = []

    @app.job(retry=ONCE)
    async def again(ctx: Context) -> str:
        async with ctx.lock("edition", 42):
            try:
                async with ctx.lock("edition", "42"):
                    return "twice"
            except LockCycle as error:
                caught.append(error)
        async with ctx.lock("edition", 42):
            return "once more, in turn"

    @app.job(retry=ONCE)
    def again_blocking(ctx: SyncContext) -> str:
        with ctx.lock("edition", 42):
            try:
                with ctx.lock("edition", 42):
                    return "twice"
            except LockCycle as error:
                caught.append(error)
        return "once"

    async with running(app):
        assert await (await again.enqueue()).result(seconds_left()) == "once more, in turn"
        assert await (await again_blocking.enqueue()).result(seconds_left()) == "once"
    assert [str(error).partition(":")[0] for error in caught] == [
        "lock edition '42' is held by a block around this one"
    ] * 2


async def test_it_ends_with_the_block_however_that_ends(app: Fenceline) -> None:
    inside = asyncio.Event()

    @app.job(retry=ONCE)
    async def fail(ctx: Context) -> None:
        async with ctx.lock("edition", 1):
            raise RuntimeError("in the block")

    @app.job(retry=ONCE, timeout=0.3)
    async def too_long(ctx: Context) -> None:
        async with ctx.lock("edition", 1):
            await asyncio.sleep(3600)

    @app.job(retry=ONCE, timeout=0.3)
    def too_long_blocking(ctx: SyncContext) -> None:
        with ctx.lock("edition", 1):
            while not ctx.cancelled:
                time.sleep(0.01)

    @app.job(retry=ONCE)
    async def stay(ctx: Context) -> None:
        async with ctx.lock("edition", 1):
            inside.set()
            await asyncio.sleep(3600)

    @app.job(retry=ONCE)
    async def take(ctx: Context) -> str:
        async with ctx.lock("edition", 1):
            return "taken"

    async with running(app):
        for kind, code in ((fail, "error"), (too_long, "timeout"), (too_long_blocking, "timeout")):
            record = await ended(await kind.enqueue())
            assert record.status == "failed"
            assert record.error is not None
            assert record.error["code"] == code
            assert await (await take.enqueue()).result(seconds_left()) == "taken"
        # The same when the attempt is taken away, with another in line.
        job = await stay.enqueue()
        await come(inside, "a handler is in the block")
        waiting = await take.enqueue()

        async def in_line() -> bool:
            return (await waiting.get()).waiting_for == "lock edition/1"

        await eventually(in_line, "another is in line")
        assert await job.cancel(force=True) == "cancelled"
        assert await waiting.result(seconds_left()) == "taken"


async def test_what_a_job_waits_for_is_shown_and_a_cancel_ends_the_wait(app: Fenceline) -> None:
    let_go = asyncio.Event()

    @app.job()
    async def hold(ctx: Context) -> None:
        async with ctx.lock("edition", 42):
            await let_go.wait()

    @app.job()
    async def wait(ctx: Context) -> None:
        async with ctx.lock("edition", 42):
            raise AssertionError("never")

    async with running(app):
        holder = await hold.enqueue()
        await until_running(holder)
        waiter = await wait.enqueue()

        async def both() -> Any:
            found = await app.system.locks()
            return found if len(found) == 2 else None

        locks = await eventually(both, "one holds the lock and one waits")
        assert [(lock.job, lock.namespace, lock.name, lock.held) for lock in locks] == [
            (holder.id, "edition", "42", True),
            (waiter.id, "edition", "42", False),
        ]
        assert await asyncio.to_thread(app.sync.system.locks, "default") == locks
        assert await app.system.locks("another") == []
        await until_running(waiter)
        assert (await waiter.get()).waiting_for == "lock edition/42"
        assert (await holder.get()).waiting_for is None
        await waiter.cancel()
        assert await waiter.wait(seconds_left()) == "cancelled"
        assert [lock.job for lock in await app.system.locks()] == [holder.id]
        let_go.set()
        assert await holder.wait(seconds_left()) == "succeeded"


async def test_bad_names_are_refused(app: Fenceline) -> None:
    @app.job(retry=ONCE)
    async def uncaught(ctx: Context) -> None:
        async with ctx.lock("No Such", 1):
            raise AssertionError("never")

    @app.job(retry=ONCE)
    async def caught(ctx: Context) -> list[str]:
        said = []
        for namespace, name in (("", "1"), ("a/b", "1"), ("edition", ""), ("edition", "x" * 201), ("edition", "\x00")):
            try:
                async with ctx.lock(namespace, name):
                    raise AssertionError("never")
            except (InvalidName, InvalidOption) as error:
                said.append(error.code)
        return said

    async with running(app):
        record = await ended(await uncaught.enqueue())
        assert record.error is not None
        assert (record.status, record.error["code"]) == ("failed", "invalid_name")
        assert "lock namespace 'No Such'" in record.error["message"]
        assert await (await caught.enqueue()).result(seconds_left()) == ["invalid_name"] * 2 + ["invalid_option"] * 3


@pytest.mark.parametrize("context", [Context, SyncContext])
def test_the_parameters_have_their_public_names(context: type) -> None:
    assert list(inspect.signature(context.lock).parameters) == ["self", "namespace", "id"]  # type: ignore[attr-defined]  # one of two classes
    assert list(inspect.signature(context.guard_newer).parameters) == ["self", "resource", "version"]  # type: ignore[attr-defined]  # one of two classes
