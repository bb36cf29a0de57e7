"""What jobs may rely on, however they reach workers: one suite for every delivery, a backend of yours included.

    from fenceline.testing.delivery import DeliveryConformance

    class TestMyBackend(DeliveryConformance):
        delivery = MyBackend

        @pytest.fixture
        def dsn(self) -> str:
            return "postgresql://…"  # a migrated database, an empty one for each test

Each test starts a worker in this process, has it run jobs, and looks at what the database says afterwards. A test that
a delivery cannot pass by its nature is left out by name, for all to see: `test_… = None`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from fenceline.backends.contract import BackendFactory
from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.client.job import Job
from fenceline.context.context import Context
from fenceline.errors import Fail, NotFound
from fenceline.model.job import JobRecord
from fenceline.model.retry import Retry

#: So long a job may take on a busy machine; nothing here takes a tenth of it.
WAIT_SECONDS = 60.0

Scenario = Callable[[Fenceline], Awaitable[None]]


class DeliveryConformance:
    delivery: str | BackendFactory = "postgres"
    #: How many jobs are many; fewer where each takes processes of its own.
    many = 300

    # What a subclass says --------------------------------------------------------------------------------------------

    @pytest.fixture
    def dsn(self) -> str:
        raise NotImplementedError("override the fixture `dsn`: a migrated database, an empty one for each test")

    def make_app(self, dsn: str) -> Fenceline:
        return Fenceline(dsn, delivery=self.delivery)

    @contextlib.asynccontextmanager
    async def working(self, app: Fenceline) -> AsyncIterator[None]:
        """Have a worker run the app's jobs for as long as the block lasts."""
        worker = asyncio.create_task(app.run_worker(grace_seconds=0.5, lease_seconds=10.0))
        try:
            yield
        finally:
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await worker

    async def ended(self, app: Fenceline, job: Job[Any]) -> JobRecord:  # noqa: ARG002 - others need the app
        """The job when it has ended."""
        await job.wait(WAIT_SECONDS)
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

    def test_a_job_runs_with_its_args_and_its_result_is_kept(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            @app.job
            async def add(a: int, b: int) -> dict[str, int]:
                return {"sum": a + b}

            async with self.working(app):
                record = await self.ended(app, await add.enqueue(a=2, b=40))
            assert (record.status, record.result, record.attempt) == ("succeeded", {"sum": 42}, 1)
            assert record.worker is not None

        self.run(dsn, scenario)

    def test_blocking_handlers_run_too(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            @app.job
            def shout(word: str) -> str:
                return word.upper()

            async with self.working(app):
                assert (await self.ended(app, await shout.enqueue(word="hello"))).result == "HELLO"

        self.run(dsn, scenario)

    def test_a_failure_is_tried_again_and_then_kept(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_handler_ends_its_job_for_good(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            @app.job
            async def hopeless() -> None:
                raise Fail("never")

            async with self.working(app):
                record = await self.ended(app, await hopeless.enqueue())
            assert (record.status, record.attempt) == ("failed", 1)

        self.run(dsn, scenario)

    def test_log_phase_and_progress_are_kept(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_job_is_not_started_before_its_time(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            @app.job
            async def later() -> None: ...

            async with self.working(app):
                record = await self.ended(app, await later.options(run_in=timedelta(seconds=1)).enqueue())
            assert record.run_at is not None
            assert record.claimed_at is not None
            assert record.claimed_at >= record.run_at

        self.run(dsn, scenario)

    # Several ---------------------------------------------------------------------------------------------------------

    def test_many_jobs_each_run_once(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            seen: list[int] = []

            @app.job
            async def count(number: int) -> None:
                seen.append(number)

            async with self.working(app):
                jobs = await count.enqueue_many([{"number": number} for number in range(self.many)])
                records = [await self.ended(app, job) for job in jobs]
            assert sorted(seen) == list(range(self.many))
            assert {(record.status, record.attempt) for record in records} == {("succeeded", 1)}

        self.run(dsn, scenario)

    def test_a_lane_with_one_slot_starts_by_priority_then_age(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_lane_never_runs_more_than_its_slots(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            running, most, both = 0, 0, asyncio.Event()

            @app.job(lane="narrow")
            async def work() -> None:
                nonlocal running, most
                running += 1
                most = max(most, running)
                if most == 2:
                    both.set()
                with contextlib.suppress(TimeoutError):  # a worker may take its time to start another beside it
                    await asyncio.wait_for(both.wait(), WAIT_SECONDS / 10)
                await asyncio.sleep(0.02)
                running -= 1

            await app.lanes.create("narrow", slots=2)
            async with self.working(app):
                for job in await work.enqueue_many([{}] * 12):
                    await self.ended(app, job)
            assert most == 2

        self.run(dsn, scenario)

    def test_jobs_with_a_key_run_one_at_a_time_in_order(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_job_waits_for_those_that_it_comes_after(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            seen: list[str] = []

            @app.job
            async def step(name: str) -> None:
                seen.append(name)

            async with self.working(app):
                first = await step.options(run_in=timedelta(seconds=0.3)).enqueue(name="first")
                await self.ended(app, await step.options(after=[first]).enqueue(name="second"))
            assert seen == ["first", "second"]

        self.run(dsn, scenario)

    def test_children_run_after_their_parent(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_handler_waits_outside_its_slot_and_runs_no_step_again(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            asked: list[str] = []

            @app.job(lane="narrow")
            async def ask(ctx: Context) -> object:
                await ctx.step("ask", asked.append, "Publish?")
                return await ctx.wait_for("answer")

            await app.lanes.create("narrow", slots=1)
            async with self.working(app):
                jobs = [await ask.enqueue(), await ask.enqueue()]
                async with asyncio.timeout(WAIT_SECONDS):
                    while [(await job.get()).waiting_for for job in jobs] != ["signal", "signal"]:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                assert (await app.lanes.get("narrow")).in_use == 0
                for number, job in enumerate(jobs):
                    await job.signal("answer", {"number": number})
                records = [await self.ended(app, job) for job in jobs]
            assert [record.result for record in records] == [{"number": 0}, {"number": 1}]
            assert [record.attempt for record in records] == [1, 1]
            assert asked == ["Publish?", "Publish?"]

        self.run(dsn, scenario)

    # With people, and transactions -----------------------------------------------------------------------------------

    def test_what_a_transaction_enqueues_runs_after_its_commit(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_queued_job_is_cancelled_and_never_runs(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
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

        self.run(dsn, scenario)

    def test_a_running_job_is_asked_to_stop(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            @app.job
            async def endless(ctx: Context) -> None:
                while True:
                    await asyncio.sleep(0.01)
                    ctx.raise_if_cancelled()

            async with self.working(app):
                job = await endless.enqueue()
                async with asyncio.timeout(WAIT_SECONDS):
                    while await job.status() not in ("claimed", "running"):  # noqa: ASYNC110 - of the database
                        await asyncio.sleep(0.02)
                await job.cancel()
                assert (await self.ended(app, job)).status == "cancelled"

        self.run(dsn, scenario)

    def test_a_drained_lane_starts_nothing_until_it_is_resumed(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            @app.job(lane="shut")
            async def work() -> None: ...

            await app.lanes.create("shut", enabled=False)
            async with self.working(app):
                job = await work.enqueue()
                await asyncio.sleep(0.5)
                assert await job.status() == "queued"
                await app.lanes.set("shut", enabled=True)
                assert (await self.ended(app, job)).status == "succeeded"

        self.run(dsn, scenario)

    def test_what_a_worker_that_stops_has_begun_is_run_by_the_next(self, dsn: str) -> None:
        async def scenario(app: Fenceline) -> None:
            began = asyncio.Event()

            @app.job
            async def slow(ctx: Context) -> int:
                began.set()
                if ctx.token & 0xFFFFFFFF == 1:  # the first claim
                    await asyncio.sleep(WAIT_SECONDS)
                return ctx.attempt

            async with self.working(app):
                job = await slow.enqueue()
                await asyncio.wait_for(began.wait(), WAIT_SECONDS)
            async with self.working(app):
                record = await self.ended(app, job)
            assert (record.status, record.result) == ("succeeded", 1)  # given back, so not counted

        self.run(dsn, scenario)
