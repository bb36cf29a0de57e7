"""Timeouts, cancels and odd endings of handlers on the loop and in threads."""

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.support.figures import Figures
from tests.support.patience import come, eventually, seconds_left
from tests.worker.in_process_worker import ended, running, until_running

from fenceline import Fenceline, Retry, RetryLater
from fenceline.client.app_parts import app_parts
from fenceline.context.context import Context
from fenceline.engine import executor
from fenceline.engine.handler_plan import awaits
from fenceline.engine.running_attempt import RunningAttempt

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a thread that ignores everything waits for."""
    event = threading.Event()
    yield event
    event.set()


async def code_of(app: Fenceline, kind: str, **options: Any) -> str:
    record = await ended(await app.enqueue(kind, **options))
    assert record.error is not None, record
    return f"{record.status} {record.error['code']}"


async def test_a_timeout_cancels_a_coroutine(app: Fenceline) -> None:
    ends: list[str] = []

    @app.job(timeout=0.3, retry=ONCE)
    async def slow() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    @app.job(retry=ONCE)
    async def per_job() -> None:
        await asyncio.sleep(3600)

    async with running(app):
        assert await code_of(app, "slow") == "failed timeout"
        assert await code_of(app, "per_job", timeout=0.3) == "failed timeout"
    assert ends == ["cancelled"]


async def test_a_timeout_of_the_handlers_own_is_an_ordinary_failure(app: Fenceline) -> None:
    @app.job(timeout=3600, retry=ONCE)
    async def own() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(3600)

    async with running(app):
        assert await code_of(app, "own") == "failed error"


async def test_a_late_value_does_not_undo_a_timeout(app: Fenceline) -> None:
    @app.job(timeout=0.3, retry=ONCE)
    async def stubborn() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "done after all"
        return "never"

    @app.job(timeout=0.01, retry=ONCE)
    async def inline() -> str:
        time.sleep(0.05)  # noqa: ASYNC251 - what nobody can interrupt
        return "too late"

    async with running(app):
        assert await code_of(app, "stubborn") == "failed timeout"
        assert await code_of(app, "inline") == "failed timeout"


async def test_a_thread_that_ignores_its_timeout_is_lost_capacity(
    app: Fenceline, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[bool] = []

    @app.job(timeout=0.3, retry=ONCE)
    def stuck(ctx: Context) -> str:
        gate.wait()
        seen.append(ctx.cancelled)
        return "ignored"

    @app.job()
    def quick() -> int:
        return threading.get_ident()

    @app.job()
    async def beside() -> None: ...

    async with running(app, threads=2):
        with caplog.at_level(logging.WARNING, "fenceline.worker"):
            first = await app.enqueue("stuck")
            assert (await ended(first)).error["code"] == "timeout"  # type: ignore[index]  # it has one
        assert "1 of 2 threads are lost" in caplog.text
        # One place is left, and it works on.
        assert len({await (await app.enqueue("quick")).result(timeout=seconds_left()) for _ in range(3)}) == 1
        second = await app.enqueue("stuck")
        assert (await ended(second)).error["code"] == "timeout"  # type: ignore[index]  # it has one
        waiting = await app.enqueue("quick")
        for _ in range(3):  # who comes after it, and needs no thread, has run
            await (await app.enqueue("beside")).result(timeout=seconds_left())
        assert await waiting.status() in ("queued", "claimed")
        gate.set()
        await waiting.result(timeout=seconds_left())
        assert (await first.get()).result is None
    assert seen == [True, True]


async def test_a_cancel_is_cooperative_first(app: Fenceline) -> None:
    @app.job()
    async def polite(ctx: Context) -> None:
        while not ctx.cancelled:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)
        ctx.log("kept what was done")
        ctx.raise_if_cancelled()

    @app.job()
    def polite_thread(ctx: Context) -> None:
        while True:
            ctx.raise_if_cancelled()
            time.sleep(0.02)

    @app.job()
    async def finishes(ctx: Context) -> str:
        while not ctx.cancelled:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)
        return "finished anyway"

    async with running(app):
        jobs = [await app.enqueue(kind) for kind in ("polite", "polite_thread", "finishes")]
        for job in jobs:
            await until_running(job)
            await job.cancel("too many")
        assert [await job.wait(timeout=seconds_left()) for job in jobs] == ["cancelled", "cancelled", "succeeded"]
        assert [(await job.get()).error for job in jobs[:2]] == [{"code": "cancelled", "message": "too many"}] * 2
        assert [line.message for line in await jobs[0].logs()] == ["kept what was done"]


async def cancel_one_that_does_not_look(app: Fenceline, grace_seconds: float) -> float:
    """How long it takes."""

    @app.job()
    async def deaf() -> None:
        await asyncio.sleep(3600)

    async with running(app):
        job = await app.enqueue("deaf")
        await until_running(job)
        asked = time.monotonic()
        await job.cancel(grace_seconds=grace_seconds)
        assert await job.wait(timeout=seconds_left()) == "cancelled"
        took = time.monotonic() - asked
        assert (await job.get()).error == {"code": "cancelled", "message": "cancelled"}
    return took


@pytest.mark.parametrize("patience, grace, expected", [(100.0, 3600.0, 100.0), (3600.0, 600.0, 300.0)])
async def test_a_coroutine_that_does_not_look_is_cancelled_within_its_grace(
    app: Fenceline, monkeypatch: pytest.MonkeyPatch, patience: float, grace: float, expected: float
) -> None:
    """After the worker's patience, and at most half of the grace: well before the fence is rotated."""
    loop = asyncio.get_running_loop()
    asked: list[float] = []
    call_later = loop.call_later

    def call_soon(delay: float, callback: Callable[..., Any], *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__func__", None) is RunningAttempt.insist:
            asked.append(delay)
            delay = 0.0
        return call_later(delay, callback, *arguments, **options)

    monkeypatch.setattr(executor, "CANCEL_PATIENCE_SECONDS", patience)
    monkeypatch.setattr(loop, "call_later", call_soon)
    await cancel_one_that_does_not_look(app, grace)
    [delay] = asked
    assert expected / 2 < delay <= expected, "the worker is told what is left of the grace"


@pytest.mark.timing
async def test_how_soon_a_coroutine_that_does_not_look_is_cancelled(app: Fenceline, figures: Figures) -> None:
    took = await cancel_one_that_does_not_look(app, 4)
    figures.at_least("a coroutine with a grace of 4 s stops after", took, 1.5)
    figures.at_most("a coroutine with a grace of 4 s stops after", took, 3.9)


async def test_a_thread_that_ignores_a_cancel_is_fenced_off(
    app: Fenceline, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    @app.job()
    def stuck() -> str:
        gate.wait()
        return "ignored"

    @app.job()
    def quick() -> str:
        return "ran"

    def has_said(words: str) -> Callable[[], Awaitable[bool]]:
        async def said() -> bool:
            return words in caplog.text

        return said

    async with running(app, threads=3):
        job = await app.enqueue("stuck")
        await until_running(job)
        with caplog.at_level(logging.WARNING, "fenceline.worker"):
            await job.cancel(grace_seconds=1)
            assert await job.wait(timeout=seconds_left()) == "cancelled"
            await eventually(has_said("threads are lost"), "the worker says so", lambda: caplog.text)
        assert f"stale_attempt: job {job.id}" in caplog.text
        assert "1 of 3 threads are lost" in caplog.text
        with caplog.at_level(logging.WARNING, "fenceline.worker"):
            gate.set()
            # The place is free again, and what the handler returned has been looked at.
            assert [await (await app.enqueue("quick")).result(timeout=seconds_left()) for _ in range(3)] == ["ran"] * 3
        assert await job.status() == "cancelled"


async def test_a_forced_cancel_stops_the_handler_too(app: Fenceline) -> None:
    stopped = asyncio.Event()

    @app.job()
    async def busy() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    async with running(app):
        job = await app.enqueue("busy")
        await until_running(job)
        assert await job.cancel(force=True) == "cancelled"
        await come(stopped, "the handler is stopped")


async def test_whatever_a_handler_raises_is_its_jobs_failure(app: Fenceline) -> None:
    async def raise_it(error: BaseException) -> None:
        raise error

    @app.job(retry=ONCE)
    async def inline_exit() -> None:
        raise SystemExit(1)

    @app.job(retry=ONCE)
    async def inline_cancelled() -> None:
        raise asyncio.CancelledError

    @app.job(retry=ONCE)
    async def task_exit() -> None:
        await raise_it(SystemExit(1))

    @app.job(retry=ONCE)
    async def task_cancelled() -> None:
        await raise_it(asyncio.CancelledError())

    @app.job(retry=ONCE)
    def thread_exit() -> None:
        raise SystemExit(1)

    @app.job(retry=ONCE)
    def thread_stop() -> None:
        raise StopIteration

    @app.job(retry=ONCE)
    async def bad_text() -> None:
        raise ValueError("zero \x00, half \ud800, text \\u0000")

    async with running(app) as worker:
        for kind in app_parts(app).handlers:
            assert await code_of(app, kind) == "failed error", kind
        assert not worker.done()
        record = await ended(await app.enqueue("bad_text"))
    assert record.error is not None
    assert record.error["message"] == "zero \ufffd, half ?, text \\u0000"


async def test_a_decorator_that_awaits_is_not_run_inline(app: Fenceline) -> None:
    def patient(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0.01)
            return await function(*args, **kwargs)

        return wrapper

    async def plain() -> str:
        return "ran"

    app.job(kind="patient")(patient(plain))
    assert not awaits(plain)
    async with running(app):
        assert await (await app.enqueue("patient")).result(timeout=seconds_left()) == "ran"


async def test_a_forgotten_await_is_explained(app: Fenceline) -> None:
    async def plain() -> str:
        return "ran"

    @app.job(retry=ONCE)
    def forgotten() -> Any:
        return plain()

    async with running(app):
        record = await ended(await app.enqueue("forgotten"))
    assert record.error is not None
    assert "returned a coroutine" in str(record.error["message"])


async def test_shutdown_asks_threads_and_gives_jobs_back(app: Fenceline) -> None:
    ends: list[str] = []

    @app.job()
    def polite(ctx: Context) -> None:
        while not ctx.cancelled:
            time.sleep(0.01)
        ends.append("thread")
        ctx.raise_if_cancelled()

    @app.job(on_shutdown="fail")
    async def must_fail() -> None:
        await asyncio.sleep(3600)

    async with running(app, grace_seconds=0.2):
        jobs = [await app.enqueue(kind) for kind in ("polite", "must_fail")]
        for job in jobs:
            await until_running(job)
    records = [await job.get() for job in jobs]
    assert [record.status for record in records] == ["queued", "failed"]
    assert records[0].attempt == 0  # refunded
    assert records[1].error is not None
    assert records[1].error["message"] == "Worker received SIGTERM"
    assert ends == ["thread"]
    await app.close()


async def test_an_exception_that_cannot_say_what_it_is_costs_only_its_attempt(app: Fenceline) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise KeyError("message")

    @app.job(retry=ONCE)
    async def inline() -> None:
        raise Mute

    @app.job(retry=ONCE)
    async def paused() -> None:
        await asyncio.sleep(0)
        raise Mute

    @app.job(retry=ONCE)
    def blocking() -> None:
        raise Mute

    async with running(app):
        for kind in ("inline", "paused", "blocking"):
            record = await ended(await app.enqueue(kind))
            assert record.error is not None
            assert "Mute, whose text cannot be had: KeyError" in record.error["message"]


@pytest.mark.parametrize(
    "value, why", [("a\0b", "zero character"), (10**5000, "more than 4300 digits")], ids=["zero", "long"]
)
async def test_a_result_that_could_not_be_read_back_fails_its_job(app: Fenceline, value: object, why: str) -> None:
    @app.job()
    async def work() -> object:
        return value

    async with running(app):
        record = await ended(await app.enqueue("work"))
        assert record.error is not None
        assert (record.status, record.error["code"], record.attempt) == ("failed", "invalid_result", 1)
        assert why in record.error["message"]


async def test_a_handler_that_raises_keyboard_interrupt_fails_like_any_other(app: Fenceline) -> None:
    """Else it would end the worker, and the next one, and the next."""

    @app.job(retry=ONCE)
    async def inline() -> None:
        raise KeyboardInterrupt

    @app.job(retry=ONCE)
    async def paused() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    @app.job(retry=ONCE)
    def blocking() -> None:
        raise KeyboardInterrupt

    async with running(app) as worker:
        for kind in ("inline", "paused", "blocking"):
            assert await code_of(app, kind) == "failed error"
        assert not worker.done()


async def test_an_exception_that_lacks_what_its_class_has_costs_only_its_attempt(app: Fenceline) -> None:
    class Busy(RetryLater):
        def __init__(self) -> None:  # no call of super(): there is no `after`
            Exception.__init__(self, "busy")

    @app.job(retry=ONCE)
    async def work() -> None:
        raise Busy

    async with running(app) as worker:
        record = await ended(await app.enqueue("work"))
        assert not worker.done()
    assert record.error is not None
    assert (record.status, record.error["type"]) == ("failed", "AttributeError")
