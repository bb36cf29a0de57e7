"""`drain` runs what is due and raises what handlers raised."""

import threading

import pytest

from fenceline import Cancel, Context, Fail, Fenceline, Retry, RetryLater, Snooze, SyncContext
from fenceline.testing import TestedApp

#: What fails does not become due again while the test runs.
LATER = Retry(backoff="fixed", base=3600.0)


async def test_it_runs_what_jobs_bring_too(app: TestedApp) -> None:
    @app.job
    async def chain(ctx: Context, left: int) -> None:
        if left:
            await ctx.enqueue("chain", {"left": left - 1})

    await chain.enqueue(left=3)
    assert await app.drain() == 4
    assert await app.drain() == 0


async def test_job_after_job_keeps_its_connections(app: TestedApp, caplog: pytest.LogCaptureFixture) -> None:
    @app.job
    async def nothing(ctx: Context) -> None: ...

    await nothing.enqueue_many([{}] * 5)
    assert await app.drain() == 5
    assert [record.message for record in caplog.records if record.name == "fenceline.worker"] == []


async def test_one_exception_is_raised_as_it_is(app: TestedApp) -> None:
    @app.job(retry=LATER)
    async def broken() -> None:
        raise KeyError("rows")

    @app.job
    def fine() -> int:
        return 1

    failed, after = await broken.enqueue(), await fine.enqueue()
    with pytest.raises(KeyError, match="rows") as raised:
        await app.drain()
    assert any(entry.name == "broken" for entry in raised.traceback)
    assert await failed.status() == "scheduled"  # the failure is in the database, with its retry
    assert await after.status() == "succeeded"  # and the others have run


async def test_several_are_raised_together(app: TestedApp) -> None:
    @app.job(retry=LATER)
    def broken(word: str) -> None:
        raise ValueError(word)

    await broken.enqueue_many([{"word": "a"}, {"word": "b"}])
    with pytest.raises(ExceptionGroup) as raised:
        await app.drain()
    assert sorted(str(error) for error in raised.value.exceptions) == ["a", "b"]
    assert await app.drain(raises=False) == 0


async def test_failures_outside_the_handler_are_raised_too(app: TestedApp) -> None:
    @app.job(timeout=0.05, retry=1)
    async def slow(ctx: Context) -> None:
        import asyncio  # noqa: PLC0415 - so that the test stays short

        await asyncio.sleep(3600)

    @app.job
    async def odd() -> object:
        return object()

    await slow.enqueue()
    with pytest.raises(TimeoutError, match="longer than its timeout"):
        await app.drain()
    await odd.enqueue()
    with pytest.raises(Exception, match="JSON"):
        await app.drain()


@pytest.mark.parametrize("steering", [RetryLater(after=60), Snooze(60), Cancel("no need")])
async def test_steering_is_no_failure(app: TestedApp, steering: Exception) -> None:
    @app.job
    async def steer() -> None:
        raise steering

    await steer.enqueue()
    assert await app.drain() == 1


async def test_fail_is_one(app: TestedApp) -> None:
    @app.job
    async def hopeless() -> None:
        raise Fail("never")

    job = await hopeless.enqueue()
    with pytest.raises(Fail, match="never"):
        await app.drain()
    assert await job.status() == "failed"


async def test_isolated_handlers_run_in_this_process(app: TestedApp) -> None:
    seen: list[str] = []

    @app.job(isolated=True)
    def apart(ctx: SyncContext) -> None:
        ctx.step("note", seen.append, threading.current_thread().name)

    @app.job(isolated=True)
    async def apart_on_loop() -> None:
        seen.append("loop")

    await apart.enqueue()
    await apart_on_loop.enqueue()
    assert await app.drain() == 2
    assert sorted(seen) == ["fenceline-1", "loop"]


async def test_a_retry_without_a_pause_is_part_of_it(app: TestedApp) -> None:
    @app.job(retry=Retry(max_attempts=2, backoff="fixed", base=0.0))
    async def second(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise RuntimeError("first")
        return ctx.attempt

    job = await second.enqueue()
    with pytest.raises(RuntimeError, match="first"):
        await app.drain()
    assert await job.result() == 2


def test_blocking_tests_drain_too(dsn: str) -> None:
    from fenceline.testing.tested_app import under_test  # noqa: PLC0415 - the fixture is for async tests

    with under_test(Fenceline(dsn), dsn) as app:

        @app.job
        def double(number: int) -> int:
            if number < 0:
                raise ValueError("too small")
            return 2 * number

        job = double.sync.enqueue(number=4)
        assert app.sync.drain() == 1
        assert job.result() == 8
        double.options(run_in=3600).sync.enqueue(number=-1)
        app.sync.assert_enqueued("double", {"number": -1}, count=1, status="scheduled")
        app.sync.advance(hours=1)
        with pytest.raises(ValueError, match="too small"):
            app.sync.drain()
