"""Startup, shutdown and middleware."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Fenceline, Retry, SyncContext
from fenceline.context.context import Context
from fenceline.worker.lifespan import StartupFailed

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


async def test_hooks_run_once_around_the_work(app: Fenceline) -> None:
    happened: list[str] = []

    @app.on_startup
    async def first() -> None:
        happened.append("first")

    @app.on_startup
    def second() -> None:
        happened.append("second")

    @app.on_shutdown
    def failing() -> None:
        happened.append("failing")
        raise OSError("no matter")

    @app.on_shutdown
    async def last_registered() -> None:
        happened.append("last registered")

    @app.job()
    async def work() -> None:
        happened.append("work")

    async with running(app):
        for _ in range(2):
            await (await app.enqueue("work")).wait(timeout=seconds_left())
    assert happened == ["first", "second", "work", "work", "last registered", "failing"]


async def test_a_startup_that_fails_stops_the_worker(app: Fenceline) -> None:
    closed: list[bool] = []

    @app.on_startup
    async def connect_to_storage() -> None:
        raise OSError("no route to storage")

    @app.on_shutdown
    def close() -> None:
        closed.append(True)

    @app.job()
    async def work() -> None: ...

    with pytest.raises(StartupFailed, match=r"connect_to_storage failed, .* OSError: no route to storage"):
        await app.run_worker()
    assert closed == [True]
    await app.close()


async def test_middleware_is_around_every_handler(app: Fenceline) -> None:
    happened: list[str] = []

    @app.middleware
    async def outer(ctx: Context, call_next: Any) -> Any:
        happened.append(f"outer {ctx.kind}")
        try:
            return await call_next()
        finally:
            happened.append("outer end")

    @app.middleware
    async def inner(ctx: Context, call_next: Any) -> Any:
        happened.append("inner")
        return {"wrapped": await call_next(ctx)}

    @app.job()
    async def inline() -> Any:
        return 1

    @app.job()
    def threaded() -> Any:
        return 2

    @app.job(retry=ONCE)
    async def failing() -> None:
        raise LookupError("seen by both")

    async with running(app):
        assert await (await app.enqueue("inline")).result(timeout=seconds_left()) == {"wrapped": 1}
        assert await (await app.enqueue("threaded")).result(timeout=seconds_left()) == {"wrapped": 2}
        assert (await ended(await app.enqueue("failing"))).error["type"] == "LookupError"  # type: ignore[index]  # failed
    expected = [[f"outer {kind}", "inner", "outer end"] for kind in ("inline", "threaded", "failing")]
    assert happened == [step for steps in expected for step in steps]


async def test_middleware_may_answer_itself(app: Fenceline) -> None:
    @app.middleware
    async def refuse(ctx: Context, call_next: Any) -> Any:
        if ctx.attempt == 1:
            raise PermissionError("not today")
        return await call_next()

    @app.job(retry=Retry(max_attempts=2, base=0.01))
    async def work() -> str:
        return "done"

    async with running(app):
        job = await app.enqueue("work")
        assert await job.result(timeout=seconds_left()) == "done"
        assert (await job.get()).attempt == 2


async def test_blocking_middleware_is_in_the_thread_of_the_handler(app: Fenceline) -> None:
    happened: list[tuple[str, int]] = []

    def note(what: str) -> None:
        happened.append((what, threading.get_ident()))

    @app.middleware
    def outer(ctx: SyncContext, call_next: Any) -> Any:
        note(f"outer {ctx.kind}")
        try:
            return call_next()
        finally:
            note("outer end")

    @app.middleware
    async def on_loop(ctx: Context, call_next: Any) -> Any:
        note("loop")
        return await call_next()

    @app.middleware
    def inner(ctx: SyncContext, call_next: Any) -> Any:
        return {"wrapped": call_next(ctx)}

    @app.job()
    def threaded() -> Any:
        note("handler")
        return "done"

    @app.job()
    async def unwrapped() -> str:
        return "on the loop"

    async with running(app):
        assert await (await app.enqueue("threaded")).result(timeout=seconds_left()) == {"wrapped": "done"}
        assert await (await app.enqueue("unwrapped")).result(timeout=seconds_left()) == "on the loop"
    [loop, *in_thread, loop_again] = happened
    assert [what for what, _thread in happened] == ["loop", "outer threaded", "handler", "outer end", "loop"]
    assert {thread for _what, thread in in_thread} != {loop[1]}
    assert len({thread for _what, thread in in_thread}) == 1
    assert loop[1] == loop_again[1] == threading.get_ident()


async def test_what_blocking_middleware_raises_fails_the_attempt(app: Fenceline) -> None:
    @app.middleware
    def refuse(ctx: SyncContext, call_next: Any) -> Any:
        raise PermissionError(f"not today, {ctx.attempt}")

    @app.job(retry=ONCE)
    def work() -> None: ...

    async with running(app):
        error = (await ended(await app.enqueue("work"))).error
    assert error is not None
    assert (error["type"], error["message"]) == ("PermissionError", "not today, 1")


def test_middleware_is_a_function(app: Fenceline) -> None:
    with pytest.raises(TypeError, match="decorates a function"):
        app.middleware("close")  # type: ignore[type-var]  # that is the point


def test_a_worker_process_whose_startup_fails_says_so(database: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from fenceline import Fenceline\n"
        "app = Fenceline()\n"
        "@app.on_startup\n"
        "def open_vault(): raise OSError('no key')\n"
        "@app.job()\n"
        "async def work(): ...\n"
    )
    done = subprocess.run(
        [str(Path(sys.executable).parent / "fenceline"), "worker", "broken:app", "--once", "--log-format", "json"],
        cwd=tmp_path,
        env={**os.environ, "FENCELINE_DSN": database},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert done.returncode == 1
    assert '"message": "on_startup open_vault failed, so the worker does not start: OSError: no key"' in done.stderr
