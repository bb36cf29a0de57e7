"""`app.run_worker()`: a worker inside another program."""

import asyncio
import dataclasses
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.worker.fleet import Fleet, until
from tests.worker.in_process_worker import ended, running

from fenceline import Fenceline
from fenceline.model.worker_settings import WorkerSettings
from fenceline.worker.process_channel import start_with_channel


@pytest.fixture
async def app(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database) as app:
        yield app


async def test_cancel_hands_back_what_has_not_started(fleet: Fleet, app: Fenceline) -> None:
    gate = asyncio.Event()

    @app.job()
    async def wait_at_the_gate() -> None:
        await gate.wait()

    @app.job()
    async def quick() -> None:
        await asyncio.sleep(0)

    async def both_places_taken() -> bool:
        return int(await fleet.scalar("select count(*) from fenceline.running")) >= 2

    async with running(app, concurrency=2, grace_seconds=0.2):
        # Quick ones first, so that it fetches ahead.
        await quick.enqueue_many([{}] * 300)
        await fleet.ended(300)
        await wait_at_the_gate.enqueue_many([{}] * 20)
        await until(both_places_taken, "both places are taken")
    assert await fleet.scalar("select count(*) from fenceline.running") == 0
    assert await fleet.scalar("select count(*) from fenceline.ready") == 20
    assert await fleet.scalar("select count(*) from fenceline.ready where number is not null") == 0
    assert await fleet.live_pids() == []


async def helper_works(fleet: Fleet) -> None:
    """Until the process that keeps the lease has started, which it does shortly after the worker."""

    async def has_swept() -> bool:
        return bool(await fleet.scalar("select exists (select 1 from fenceline.maintenance where task = 'live')"))

    await until(has_swept, "the helper has started")


async def test_a_killed_program_gives_its_jobs_back(fleet: Fleet) -> None:
    """At once, by the helper that keeps its lease, which is long."""
    (fleet.folder / "program.py").write_text(
        "import asyncio\nfrom sample_app import app\nasyncio.run(app.run_worker(lease_seconds=3600))\n"
    )
    environment = {**os.environ, "FENCELINE_DSN": fleet.dsn, "LEDGER": str(fleet.ledger_file)}

    with subprocess.Popen([sys.executable, "program.py"], cwd=fleet.folder, env=environment) as program:  # noqa: ASYNC220 - starting it takes no time
        try:
            jobs = await fleet.enqueue("nap", {"seconds": 3600}, count=3)
            await fleet.handlers(3)
            await helper_works(fleet)
        finally:
            program.send_signal(signal.SIGKILL)

    async def given_back() -> bool:
        return int(await fleet.scalar("select count(*) from fenceline.ready")) == 3

    await until(given_back, "the jobs are back in the queue")
    for job_id in jobs:
        assert [row["outcome"] for row in await fleet.history(job_id)] == ["crashed"]


async def test_a_blocked_loop_does_not_lose_the_lease(fleet: Fleet) -> None:
    (fleet.folder / "program.py").write_text(
        "import asyncio\nfrom sample_app import app\nasyncio.run(app.run_worker(lease_seconds=20))\n"
    )
    environment = {**os.environ, "FENCELINE_DSN": fleet.dsn, "LEDGER": str(fleet.ledger_file)}
    gate = fleet.folder / "gate"
    with subprocess.Popen([sys.executable, "program.py"], cwd=fleet.folder, env=environment) as program:  # noqa: ASYNC220 - starting it takes no time
        try:
            await helper_works(fleet)
            await fleet.renewed(program.pid, 1)  # by the helper of this very registration
            await fleet.enqueue("block_the_loop_until_released", {"gate": str(gate)})
            [started] = await fleet.handlers(1)
            await fleet.started("--lease", "60")  # which would take it over
            await fleet.renewed(started.pid, 2)
            gate.touch()
            await fleet.ended(1)
        finally:
            program.send_signal(signal.SIGKILL)
    assert [row["outcome"] for row in await fleet.history()] == ["succeeded"]


#: A program whose loop ends while its worker is still about to stop, with the process that keeps the lease and one for
#: isolated handlers; it lives on for a moment, so that whoever watches them can say what it has to say.
HASTY = """
import asyncio, time
import psutil
from fenceline import Fenceline
from fenceline.worker import shutdown

shutdown.GOODBYE_SECONDS = 20.0  # however slow the machine is, the database hears of the end
app = Fenceline()

@app.job(isolated=True)
def alone() -> None: ...

async def main() -> None:
    worker = asyncio.create_task(app.run_worker(import_name="program:app"))
    await (await alone.enqueue()).result(timeout=3600)
    while len(psutil.Process().children()) < 2:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    {last}

if __name__ == "__main__":
    asyncio.run(main())
    assert not psutil.Process().children()
    time.sleep(1)
"""


@pytest.mark.parametrize("last", ["worker.cancel()", "worker.cancel(); await asyncio.sleep(0.02)", "pass"])
async def test_a_program_that_ends_in_a_hurry_leaves_no_process_and_no_complaint(fleet: Fleet, last: str) -> None:
    (fleet.folder / "program.py").write_text(HASTY.replace("{last}", last))
    environment = {**os.environ, "FENCELINE_DSN": fleet.dsn}
    program = await asyncio.create_subprocess_exec(
        sys.executable, "program.py", cwd=fleet.folder, env=environment, stderr=subprocess.PIPE
    )
    try:
        _output, errors = await program.communicate()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert (program.returncode, errors.decode()) == (0, "")


async def test_without_an_import_name_a_suspect_waits_or_runs_beside_others(
    fleet: Fleet, app: Fenceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a worker has no process for it. Nobody ever waits for it, and it does not wait for ever."""
    monkeypatch.setattr("fenceline.engine.lane_state.PATIENCE_SECONDS", float("inf"))
    gate, order = asyncio.Event(), []

    @app.job()
    async def hold() -> None:
        await gate.wait()

    @app.job()
    async def note(word: str) -> None:
        order.append(word)
        await asyncio.sleep(0)

    await note.enqueue_many([{"word": "suspect"}] * 2)
    died = await fleet.scalar("select fenceline.register_worker('w')")
    assert await fleet.scalar("select count(*) from fenceline.claim_jobs($1, p_limit => 2)", died) == 2
    await hold.enqueue()

    async def held() -> bool:
        return bool(await fleet.scalar("select exists (select 1 from fenceline.running where started_at is not null)"))

    async with running(app):
        await until(held, "it is not idle")
        await fleet.scalar("select fenceline.report_crash($1)", died)
        await note.enqueue_many([{"word": "other"}] * 20)
        await fleet.ended(20)
        assert order == ["other"] * 20
        monkeypatch.setattr("fenceline.engine.lane_state.PATIENCE_SECONDS", 0.0)
        await fleet.ended(22)
        assert order == ["other"] * 20 + ["suspect"] * 2
        gate.set()
        await fleet.ended(23)


async def test_a_machine_that_starts_no_process_for_a_while_costs_no_lease(
    fleet: Fleet, app: Fenceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many processes, or no memory for one more: it is tried again until the lease ends."""
    refusals = iter(range(3))

    async def refuse_some(*given: Any, **options: Any) -> Any:
        if next(refusals, None) is not None:
            raise BlockingIOError("Resource temporarily unavailable")
        return await start_with_channel(*given, **options)

    monkeypatch.setattr("fenceline.worker.lease_process.start_with_channel", refuse_some)

    gate = asyncio.Event()

    @app.job()
    async def hold() -> None:
        await gate.wait()

    job = await hold.enqueue()
    async with running(app, lease_seconds=30.0):
        await until(fleet.live_pids, "it is registered")
        await fleet.renewed(os.getpid(), 1)
        gate.set()
        assert (await ended(job)).status == "succeeded"
    assert list(refusals) == []
    assert [row["outcome"] for row in await fleet.history()] == ["succeeded"]


def test_its_options_are_those_of_a_worker_with_the_same_defaults() -> None:
    options = inspect.signature(Fenceline.run_worker).parameters
    settings = {field.name: field.default for field in dataclasses.fields(WorkerSettings)}
    of_processes = {"processes", "log_format", "log_level", "log_jobs", "metrics"}
    assert {name: options[name].default for name in settings.keys() - of_processes} == {
        name: settings[name] for name in settings.keys() - of_processes
    }
    assert options.keys() - settings.keys() == {"self", "import_name"}
