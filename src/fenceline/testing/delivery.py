"""What every delivery must do: one suite of tests for all of them, including a backend of your own.

    from fenceline.testing.delivery import DeliveryConformance

    class TestMyBackend(DeliveryConformance):
        delivery = MyBackend

Each test starts a worker in this process, lets it run jobs, and then checks the database. If a delivery cannot pass a
test by its nature, leave that test out visibly, by name: `test_… = None`.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from fenceline.app import Fenceline
from fenceline.backends.contract import BackendFactory
from fenceline.client.app_parts import app_parts
from fenceline.client.job import Job
from fenceline.context.context import Context
from fenceline.errors import Fail, NotFound, ResourceLocked
from fenceline.model.job import JobRecord
from fenceline.model.retry import Retry

Scenario = Callable[[Fenceline], Awaitable[None]]


def scenario(play: Callable[[Any, Fenceline], Awaitable[None]]) -> Callable[[Any, str], None]:
    """Make a test of a method: it is called with an app on the database `dsn`."""

    @functools.wraps(play)
    def test(self: "DeliveryConformance", dsn: str) -> None:
        self.run(dsn, functools.partial(play, self))

    del test.__wrapped__  # so that pytest sees the fixture that this function takes
    return test


class DeliveryConformance:
    delivery: str | BackendFactory = "postgres"
    #: The number of jobs in the test with many. Lower it if each takes a process of its own.
    many = 300

    # For subclasses to override --------------------------------------------------------------------------------------

    @pytest.fixture
    def dsn(self, fenceline_dsn: str) -> str:
        """A migrated database, an empty one for each test."""
        return fenceline_dsn

    def make_app(self, dsn: str) -> Fenceline:
        return Fenceline(dsn, delivery=self.delivery)

    def patience_seconds(self) -> float:
        """How long a job may take on a busy machine. Usually none takes a tenth of it."""
        return 60.0

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        """Run the app's jobs with a worker until the block ends."""
        worker = asyncio.create_task(app.run_worker(grace_seconds=0.5, lease_seconds=60.0))
        try:
            yield
        finally:
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await worker

    async def ended(self, app: Fenceline, job: Job[Any]) -> JobRecord:  # noqa: ARG002 - some subclasses need the app
        """Wait until the job has ended, and return its record."""
        await job.wait(self.patience_seconds())
        return await job.get()

    def run(self, dsn: str, scenario: Scenario) -> None:
        async def play() -> None:
            app = self.make_app(dsn)
            try:
                await scenario(app)
            finally:
                await app.close()

        asyncio.run(play())

    # One job ---------------------------------------------------------------------------------------------------------

    @scenario
    async def test_a_job_runs_with_its_args_and_its_result_is_kept(self, app: Fenceline) -> None:
        @app.job
        async def add(a: int, b: int) -> dict[str, int]:
            return {"sum": a + b}

        async with self.working(app):
            record = await self.ended(app, await add.enqueue(a=2, b=40))
        assert (record.status, record.result, record.attempt) == ("succeeded", {"sum": 42}, 1)
        assert record.worker is not None

    @scenario
    async def test_blocking_handlers_run_too(self, app: Fenceline) -> None:
        @app.job
        def shout(word: str) -> str:
            return word.upper()

        async with self.working(app):
            assert (await self.ended(app, await shout.enqueue(word="hello"))).result == "HELLO"

    @scenario
    async def test_a_failure_is_tried_again_and_then_kept(self, app: Fenceline) -> None:
        @app.job(retry=Retry(max_attempts=3, backoff="fixed", base=0.1))
        async def fickle(ctx: Context, good: int) -> int:
            if ctx.attempt < good:
                raise RuntimeError("not yet")
            return ctx.attempt

        async with self.working(app):
            second, never = await fickle.enqueue(good=2), await fickle.enqueue(good=9)
            assert (await self.ended(app, second)).result == 2
            record = await self.ended(app, never)
        assert (record.status, record.attempt) == ("failed", 3)
        assert record.error is not None
        assert "not yet" in record.error["message"]

    @scenario
    async def test_a_handler_ends_its_job_for_good(self, app: Fenceline) -> None:
        @app.job
        async def hopeless() -> None:
            raise Fail("never")

        async with self.working(app):
            record = await self.ended(app, await hopeless.enqueue())
        assert (record.status, record.attempt) == ("failed", 1)

    @scenario
    async def test_log_phase_and_progress_are_kept(self, app: Fenceline) -> None:
        @app.job
        async def talk(ctx: Context) -> None:
            ctx.log("begun", size=3)
            async with ctx.phase("count"):
                await ctx.progress(2, 3, "nearly")

        async with self.working(app):
            job = await talk.enqueue()
            record = await self.ended(app, job)
        assert record.phase == "count"
        assert record.progress is not None
        assert (record.progress["done"], record.progress["total"]) == (2, 3)
        assert [line.message for line in await job.logs()] == ["begun"]

    @scenario
    async def test_a_job_is_not_started_before_its_time(self, app: Fenceline) -> None:
        @app.job
        async def later() -> None: ...

        async with self.working(app):
            record = await self.ended(app, await later.options(run_in=timedelta(seconds=1)).enqueue())
        assert record.run_at is not None
        assert record.claimed_at is not None
        assert record.claimed_at >= record.run_at

    # Several ---------------------------------------------------------------------------------------------------------

    @scenario
    async def test_many_jobs_each_run_once(self, app: Fenceline) -> None:
        seen: list[int] = []

        @app.job
        async def count(number: int) -> None:
            seen.append(number)

        async with self.working(app):
            jobs = await count.enqueue_many([{"number": number} for number in range(self.many)])
            records = [await self.ended(app, job) for job in jobs]
        assert sorted(seen) == list(range(self.many))
        assert {(record.status, record.attempt) for record in records} == {("succeeded", 1)}

    @scenario
    async def test_a_lane_with_one_slot_starts_by_priority_then_age(self, app: Fenceline) -> None:
        started: list[str] = []

        @app.job(lane="narrow")
        async def note(name: str) -> None:
            started.append(name)

        await app.lanes.create("narrow", slots=1, enabled=False)
        jobs = [
            await note.options(priority=priority).enqueue(name=name)
            for name, priority in (("late", 0), ("later", 0), ("urgent", 5), ("last", -5))
        ]
        await app.lanes.set("narrow", enabled=True)
        async with self.working(app):
            for job in jobs:
                await self.ended(app, job)
        assert started == ["urgent", "late", "later", "last"]

    @scenario
    async def test_a_lane_never_runs_more_than_its_slots(self, app: Fenceline) -> None:
        running, most, both = 0, 0, asyncio.Event()

        @app.job(lane="narrow")
        async def work() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if most == 2:
                both.set()
            with contextlib.suppress(TimeoutError):  # a worker may be slow to start a second job
                await asyncio.wait_for(both.wait(), self.patience_seconds() / 10)
            await asyncio.sleep(0.02)
            running -= 1

        await app.lanes.create("narrow", slots=2)
        async with self.working(app):
            for job in await work.enqueue_many([{}] * 12):
                await self.ended(app, job)
        assert most == 2

    @scenario
    async def test_jobs_with_a_key_run_one_at_a_time_in_order(self, app: Fenceline) -> None:
        seen: list[tuple[str, int]] = []

        @app.job
        async def book(number: int) -> None:
            seen.append(("begin", number))
            await asyncio.sleep(0.01)
            seen.append(("end", number))

        async with self.working(app):
            jobs = [await book.options(key="account:7").enqueue(number=number) for number in range(4)]
            for job in jobs:
                await self.ended(app, job)
        assert seen == [(what, number) for number in range(4) for what in ("begin", "end")]

    @scenario
    async def test_a_lock_lets_in_one_handler_at_a_time(self, app: Fenceline) -> None:
        inside, most = 0, 0

        @app.job
        async def visit(ctx: Context) -> None:
            nonlocal inside, most
            async with ctx.lock("room", "7"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.02)
                inside -= 1

        async with self.working(app):
            records = [await self.ended(app, job) for job in await visit.enqueue_many([{}] * 4)]
        assert {record.status for record in records} == {"succeeded"}
        assert most == 1

    @scenario
    async def test_a_resource_lock_is_held_from_the_enqueue_to_the_end(self, app: Fenceline) -> None:
        @app.job(lane="shut")
        async def build() -> None: ...

        await app.lanes.create("shut", enabled=False)
        locked = build.options(resource_lock="project:7")
        async with self.working(app):
            job = await locked.enqueue()
            with pytest.raises(ResourceLocked):
                await locked.enqueue()
            await app.lanes.set("shut", enabled=True)
            await self.ended(app, job)
            assert (await self.ended(app, await locked.enqueue())).status == "succeeded"

    @scenario
    async def test_a_job_waits_for_those_that_it_comes_after(self, app: Fenceline) -> None:
        seen: list[str] = []

        @app.job
        async def step(name: str) -> None:
            seen.append(name)

        async with self.working(app):
            first = await step.options(run_in=timedelta(seconds=0.3)).enqueue(name="first")
            await self.ended(app, await step.options(after=[first]).enqueue(name="second"))
        assert seen == ["first", "second"]

    @scenario
    async def test_children_run_after_their_parent(self, app: Fenceline) -> None:
        @app.job
        async def leaf(number: int) -> int:
            return number

        @app.job
        async def tree(ctx: Context) -> list[str]:
            return [(await ctx.enqueue("leaf", {"number": number})).id for number in range(3)]

        async with self.working(app):
            parent = await self.ended(app, await tree.enqueue())
            leaves = [await self.ended(app, app.jobs.handle(name)) for name in parent.result]
        assert [leaf.result for leaf in leaves] == [0, 1, 2]
        assert {leaf.parent for leaf in leaves} == {parent.id}

    @scenario
    async def test_a_handler_waits_outside_its_slot_and_runs_no_step_again(self, app: Fenceline) -> None:
        asked: list[str] = []

        @app.job(lane="narrow")
        async def ask(ctx: Context) -> object:
            await ctx.step("ask", asked.append, "Publish?")
            return await ctx.wait_for("answer")

        await app.lanes.create("narrow", slots=1)
        async with self.working(app):
            jobs = [await ask.enqueue(), await ask.enqueue()]
            async with asyncio.timeout(self.patience_seconds()):
                while [(await job.get()).waiting_for for job in jobs] != ["signal", "signal"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert (await app.lanes.get("narrow")).in_use == 0
            for number, job in enumerate(jobs):
                await job.signal("answer", {"number": number})
            records = [await self.ended(app, job) for job in jobs]
        assert [record.result for record in records] == [{"number": 0}, {"number": 1}]
        assert [record.attempt for record in records] == [1, 1]
        assert asked == ["Publish?", "Publish?"]

    # With people, and transactions -----------------------------------------------------------------------------------

    @scenario
    async def test_what_a_transaction_enqueues_runs_after_its_commit(self, app: Fenceline) -> None:
        @app.job
        async def work() -> None: ...

        async with self.working(app), app_parts(app).database().transaction_connection() as connection:
            async with connection.transaction():
                job = await work.options(connection=connection).enqueue()
                await asyncio.sleep(0.2)
                committed = await connection.fetchval("select clock_timestamp()")
            record = await self.ended(app, job)
            rolled_back = connection.transaction()
            await rolled_back.start()
            never = await work.options(connection=connection).enqueue()
            await rolled_back.rollback()
        assert record.claimed_at is not None
        assert record.claimed_at >= committed
        with pytest.raises(NotFound):
            await never.get()

    @scenario
    async def test_a_queued_job_is_cancelled_and_never_runs(self, app: Fenceline) -> None:
        ran = False

        @app.job(lane="shut")
        async def work() -> None:
            nonlocal ran
            ran = True

        await app.lanes.create("shut", enabled=False)
        async with self.working(app):
            job = await work.enqueue()
            await job.cancel()
            await app.lanes.set("shut", enabled=True)
            assert (await self.ended(app, await work.enqueue())).status == "succeeded"
            assert ran
            assert (await job.get()).status == "cancelled"
            assert (await job.get()).attempt == 0

    @scenario
    async def test_a_job_that_failed_runs_again_when_somebody_says_so(self, app: Fenceline) -> None:
        attempts = 0

        @app.job
        async def mend() -> int:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                raise Fail("broken")
            return attempts

        async with self.working(app):
            job = await mend.enqueue()
            assert (await self.ended(app, job)).status == "failed"
            again = await job.retry()
            record = await self.ended(app, again)
        assert (record.status, record.result) == ("succeeded", 2)

    @scenario
    async def test_a_new_priority_changes_the_order(self, app: Fenceline) -> None:
        started: list[str] = []

        @app.job(lane="narrow")
        async def note(name: str) -> None:
            started.append(name)

        await app.lanes.create("narrow", slots=1, enabled=False)
        async with self.working(app):
            jobs = [await note.enqueue(name=name) for name in ("first", "second", "third")]
            await jobs[2].reprioritise(9)
            await app.lanes.set("narrow", enabled=True)
            for job in jobs:
                await self.ended(app, job)
        assert started == ["third", "first", "second"]

    @scenario
    async def test_a_running_job_is_asked_to_stop(self, app: Fenceline) -> None:
        @app.job
        async def endless(ctx: Context) -> None:
            while True:
                await asyncio.sleep(0.01)
                ctx.raise_if_cancelled()

        async with self.working(app):
            job = await endless.enqueue()
            async with asyncio.timeout(self.patience_seconds()):
                while await job.status() not in ("claimed", "running"):  # noqa: ASYNC110 - of the database
                    await asyncio.sleep(0.02)
            await job.cancel()
            assert (await self.ended(app, job)).status == "cancelled"

    @scenario
    async def test_a_drained_lane_starts_nothing_until_it_is_resumed(self, app: Fenceline) -> None:
        @app.job(lane="shut")
        async def work() -> None: ...

        await app.lanes.create("shut", enabled=False)
        async with self.working(app):
            job = await work.enqueue()
            await asyncio.sleep(0.5)
            assert await job.status() == "queued"
            await app.lanes.set("shut", enabled=True)
            assert (await self.ended(app, job)).status == "succeeded"

    @scenario
    async def test_what_a_worker_that_stops_has_begun_is_run_by_the_next(self, app: Fenceline) -> None:
        began = asyncio.Event()

        @app.job
        async def slow(ctx: Context) -> int:
            began.set()
            if ctx.token & 0xFFFFFFFF == 1:  # the first claim
                await asyncio.sleep(self.patience_seconds())
            return ctx.attempt

        async with self.working(app):
            job = await slow.enqueue()
            await asyncio.wait_for(began.wait(), self.patience_seconds())
        async with self.working(app):
            record = await self.ended(app, job)
        assert (record.status, record.result) == ("succeeded", 1)  # given back, so not counted
