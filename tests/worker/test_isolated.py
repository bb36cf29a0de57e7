"""Handlers in killable processes of their own."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import Connect
from tests.support.figures import Figures
from tests.support.patience import eventually, seconds_left
from tests.worker.fleet import is_alive
from tests.worker.in_process_worker import ended, running, until_running

from fenceline import Fenceline
from fenceline.engine import executor
from fenceline.engine.engine import ImportNameMissing
from fenceline.engine.running_attempt import RunningAttempt
from fenceline.worker.isolated_pool import IsolatedPool, IsolatedProcess

NAME = "tests.worker.isolated_app:app"


@pytest.fixture
def app(database: str, monkeypatch: pytest.MonkeyPatch) -> Fenceline:
    """The app of isolated_app.py, as a fresh import in this process and in others finds it."""
    import importlib  # noqa: PLC0415 - the app reads the variable when it is made

    monkeypatch.setenv("FENCELINE_DSN", database)
    from tests.worker import isolated_app  # noqa: PLC0415 - as above

    made: Fenceline = importlib.reload(isolated_app).app
    return made


async def test_args_result_and_context_cross(app: Fenceline) -> None:
    async with running(app, import_name=NAME):
        job = await app.enqueue("talk", {"text": "grüße \u2028"})
        got = await job.result(timeout=seconds_left())
        assert got == {"attempt": 1, "token": got["token"], "job": job.id, "text": "grüße \u2028"}
        assert (
            await (await app.enqueue("echo", {"text": "x" * 500_000})).result(timeout=seconds_left())
        ) == "x" * 500_000
        lines = await job.logs()
    assert [(line.message, line.level) for line in lines] == [
        ("before", "info"),
        ("grüße \u2028", "info"),
        ("said grüße \u2028", "warning"),
    ]
    assert lines[1].fields == {"worth": "nan", "odd": "\ufffd"}


async def test_the_process_is_not_the_worker_and_is_used_again(app: Fenceline) -> None:
    async with running(app, import_name=NAME, isolated=1):
        first = await (await app.enqueue("who")).result(timeout=seconds_left())
        second = await (await app.enqueue("who")).result(timeout=seconds_left())
    assert first == second  # the same process, started once with its hooks
    assert first["pid"] != os.getpid()
    assert first["started"] == 1


async def test_failures_are_the_jobs(app: Fenceline) -> None:
    async with running(app, import_name=NAME, isolated=1):
        failed = await ended(await app.enqueue("fail"))
        left = await ended(await app.enqueue("leave"))
    assert failed.error is not None
    assert (failed.status, failed.error["type"], failed.error["message"]) == ("failed", "LookupError", "not there")
    assert "in fail" in str(failed.error["traceback"])
    assert left.error is not None
    assert left.error["type"] == "SystemExit"


async def test_a_timeout_kills_the_process(app: Fenceline) -> None:
    async with running(app, import_name=NAME, isolated=1):
        pid = (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"]
        job = await app.enqueue("sleep_for_ever", timeout=0.5)
        record = await ended(job)
        assert record.error is not None
        assert (record.status, record.error["code"]) == ("failed", "timeout")
        await until_gone(pid)
        assert (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"] != pid


async def test_a_death_is_the_jobs_alone_and_the_third_is_quarantine(app: Fenceline, connect: Connect) -> None:
    async with running(app, import_name=NAME) as worker:
        bystander = await app.enqueue("bystander")
        await until_running(bystander)
        job = await app.enqueue("abort", max_attempts=1)
        record = await ended(job)
        assert record.error is not None
        assert (record.status, record.error["code"], record.error["signal"]) == ("failed", "quarantined", 6)
        from tests.worker import isolated_app  # noqa: PLC0415 - as it was imported anew

        isolated_app.released.set()
        assert await bystander.result(timeout=seconds_left()) == os.getpid()
        assert not worker.done()
        rows = await (await connect()).fetch("select outcome, number, final from fenceline.history order by ended_at")
    assert [(row["outcome"], row["number"]) for row in rows if row["number"] and not row["final"]] == [
        ("crashed", 1)
    ] * 2


async def test_memory_over_the_limit_fails_the_attempt(app: Fenceline) -> None:
    async with running(app, import_name=NAME, isolated=1):
        assert await (await app.enqueue("hoard", {"megabytes": 20})).result(timeout=seconds_left()) == 20 * 2**20
        record = await ended(await app.enqueue("hoard", {"megabytes": 400}))
        assert record.error is not None
        assert (record.error["code"], record.error["type"]) == ("memory_limit", "MemoryError")
        assert await (await app.enqueue("hoard", {"megabytes": 20})).result(timeout=seconds_left()) == 20 * 2**20


async def test_a_cancel_reaches_a_blocking_handler(app: Fenceline) -> None:
    async with running(app, import_name=NAME):
        job = await app.enqueue("stop_when_asked")
        await until_running(job)
        await job.cancel("too many")
        assert await job.wait(timeout=seconds_left()) == "cancelled"
        assert (await job.get()).error == {"code": "cancelled", "message": "too many"}
        assert [line.message for line in await job.logs()] == ["before", "kept what was done"]


async def test_a_cancel_reaches_a_handler_whose_process_is_still_starting(
    app: Fenceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    start, ask_to_stop = IsolatedPool._start, RunningAttempt.ask_to_stop

    async def start_slowly(self: IsolatedPool) -> IsolatedProcess:
        process = await start(self)
        await asked.wait()
        return process

    def ask_and_note(self: RunningAttempt) -> None:
        ask_to_stop(self)
        asked.set()

    monkeypatch.setattr(IsolatedPool, "_start", start_slowly)
    monkeypatch.setattr(RunningAttempt, "ask_to_stop", ask_and_note)
    monkeypatch.setattr(executor, "CANCEL_PATIENCE_SECONDS", 3600.0)  # nothing but the request stops it
    async with running(app, import_name=NAME):
        job = await app.enqueue("stop_when_asked")
        await until_running(job)
        await job.cancel("too many")
        assert await job.wait(timeout=seconds_left()) == "cancelled"
        assert [line.message for line in await job.logs()] == ["before", "kept what was done"]


async def cancel_one_that_waits(app: Fenceline, grace_seconds: float) -> float:
    """Ask an async handler that does not look to stop; how long it took. Its process is to live on."""
    async with running(app, import_name=NAME, isolated=1):
        pid = (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"]
        job = await app.enqueue("wait_for_ever")
        await eventually(job.logs, "its process has begun to run it")
        asked = time.monotonic()
        await job.cancel(grace_seconds=grace_seconds)
        assert await job.wait(timeout=seconds_left()) == "cancelled"
        took = time.monotonic() - asked
        # It stopped by itself: the process lives and is used again.
        assert (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"] == pid
    return took


async def test_an_async_handler_is_cancelled_within_its_grace(app: Fenceline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before it is over, so that nothing else can have stopped it."""
    monkeypatch.setattr(executor, "CANCEL_PATIENCE_SECONDS", 0.1)
    await cancel_one_that_waits(app, grace_seconds=3600)


@pytest.mark.timing
async def test_how_soon_an_async_handler_is_cancelled(app: Fenceline, figures: Figures) -> None:
    took = await cancel_one_that_waits(app, grace_seconds=4)
    figures.at_least("an isolated handler with a grace of 4 s stops after", took, 1.0)
    figures.at_most("an isolated handler with a grace of 4 s stops after", took, 3.9)


async def test_after_the_grace_the_process_is_killed(app: Fenceline) -> None:
    async with running(app, import_name=NAME, isolated=1):
        pid = (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"]
        job = await app.enqueue("sleep_for_ever")
        await until_running(job)
        await job.cancel(grace_seconds=1)
        assert await job.wait(timeout=seconds_left()) == "cancelled"
        await until_gone(pid)
        assert (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"] != pid


async def cancel_by_force(app: Fenceline) -> float:
    """How long it takes until the process is gone."""
    async with running(app, import_name=NAME, isolated=1, lease_seconds=3600.0):  # no heartbeat brings the word
        pid = (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"]
        job = await app.enqueue("sleep_for_ever")
        await eventually(job.logs, "its process has begun to run it")
        asked = time.monotonic()
        assert await job.cancel(force=True) == "cancelled"
        await until_gone(pid)
        return time.monotonic() - asked


async def test_a_forced_cancel_kills_at_once(app: Fenceline) -> None:
    await cancel_by_force(app)


@pytest.mark.timing
async def test_how_soon_a_forced_cancel_kills(app: Fenceline, figures: Figures) -> None:
    figures.at_most("a forced cancel kills the process after", await cancel_by_force(app), 3.0)


async def test_shutdown_gives_the_job_back_and_leaves_no_process(app: Fenceline) -> None:
    async with running(app, import_name=NAME, isolated=1):
        pid = (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"]
        job = await app.enqueue("sleep_for_ever")
        await until_running(job)
    assert await job.status() == "queued"
    await app.close()
    await until_gone(pid)


async def test_without_an_import_name_isolated_kinds_are_refused(app: Fenceline) -> None:
    with pytest.raises(ImportNameMissing, match=r"who, talk.*import_name"):
        await app.run_worker()
    await app.close()


async def test_in_a_worker_process_of_its_own(app: Fenceline) -> None:
    command = [str(Path(sys.executable).parent / "fenceline"), "worker", NAME, "--isolated", "1"]
    good = await app.enqueue("who")
    assert subprocess.run([*command, "--once"], timeout=seconds_left(), check=False).returncode == 0  # noqa: ASYNC221 - nothing else happens on this loop
    assert await good.status() == "succeeded"
    bad = await app.enqueue("abort")
    assert subprocess.run([*command, "--once"], timeout=seconds_left(), check=False).returncode == 1  # noqa: ASYNC221 - nothing else happens on this loop
    assert await bad.status() == "queued"  # its first death of three
    await bad.cancel()

    worker = subprocess.Popen(command)  # noqa: ASYNC220 - nothing else happens on this loop
    try:
        pid = (await (await app.enqueue("who")).result(timeout=seconds_left()))["pid"]
        await until_running(await app.enqueue("sleep_for_ever"))
        assert is_alive(pid)
    finally:
        worker.kill()  # the supervisor: its children go with it, and theirs with them
        worker.wait()
    await until_gone(pid)
    await app.close()


def test_a_memory_limit_needs_a_process(database: str) -> None:
    with pytest.raises(ValueError, match="isolated=True"):
        Fenceline(database).job(memory_limit_mb=5)


async def until_gone(pid: int) -> None:
    async def gone() -> bool:
        return not is_alive(pid)

    await eventually(gone, f"process {pid} ends")
