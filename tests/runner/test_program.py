"""`fenceline runner` as a process: exit codes, signals, its death, its helper."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Connect
from tests.context import identity_app
from tests.context.test_identity import SECRET, assert_nothing_readable, everything
from tests.runner.conftest import LiveServer
from tests.support.figures import Figures
from tests.support.patience import seconds_left
from tests.worker.fleet import FENCELINE, WorkerProcess, until

from fenceline import Job
from fenceline.model.public_id import parse_id


class Programs:
    """Runner programs of one test, in a folder of their own."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self._folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "FENCELINE_DSN"},
            "FENCELINE_URL": url,
            "FENCELINE_TOKEN": token,
            "LEDGER": str(folder / "ledger"),
        }
        self._started: list[WorkerProcess] = []
        for app in (Path(__file__).with_name("runner_app.py"), Path(identity_app.__file__)):
            shutil.copy(app, folder / app.name)

    def start(self, *options: str, app: str = "runner_app:app", **environment: str) -> WorkerProcess:
        program = WorkerProcess(
            [str(FENCELINE), "runner", app, *options],
            self._folder,
            {**self._environment, **environment},
            self._folder / f"runner{len(self._started)}.log",
        )
        self._started.append(program)
        return program

    async def once(self, *options: str, **environment: str) -> int:
        return await self.start("--once", *options, **environment).exit_code()

    async def noted(self, count: int = 1) -> list[str]:
        ledger = self._folder / "ledger"

        async def lines() -> list[str]:
            found = ledger.read_text().splitlines() if ledger.exists() else []
            return found if len(found) >= count else []

        found: list[str] = await until(lines, f"{count} lines in the ledger")
        return found

    def close(self) -> None:
        for program in self._started:
            if program.process.poll() is None:
                program.kill()


@pytest.fixture
async def programs(tmp_path: Path, live: LiveServer, token: str) -> AsyncIterator[Programs]:
    programs = Programs(tmp_path, live.url, token)
    yield programs
    programs.close()


async def final(job: Job[Any]) -> str:
    async def status() -> Any:
        record = await job.get()
        return record.status if record.finished_at else None

    return str(await until(status, "the job ends"))


async def test_once_tells_by_its_exit_code(programs: Programs, live: LiveServer) -> None:
    assert await programs.once() == 2
    assert await programs.once("--empty-exit", "0") == 0
    good, bad = await live.app.enqueue("add", {"a": 1, "b": 2}), await live.app.enqueue("fail", max_attempts=1)
    assert await programs.once() == 0
    assert await good.result(timeout=seconds_left()) == 3
    assert await programs.once() == 1
    assert await bad.status() == "failed"


async def test_once_does_not_wait_for_a_server_that_is_away(programs: Programs) -> None:
    """Nor does it keep whoever started it from stopping it."""
    program = programs.start("--once", FENCELINE_URL="http://127.0.0.1:1")
    assert await program.exit_code() == 1
    (line,) = program.output().splitlines()
    assert line.startswith("Error: http://127.0.0.1:1: the server does not answer")
    assert "check --url (or FENCELINE_URL)" in line


async def test_what_is_wrong_with_the_command_is_said_in_a_line(programs: Programs, live: LiveServer) -> None:
    for token in ("fl_wrong", ""):
        program = programs.start("--once", FENCELINE_TOKEN=token)
        assert await program.exit_code() in (1, 2)
        assert "Traceback" not in program.output()
        assert "token" in program.output()


async def test_isolated_handlers_run_in_processes_of_their_own(programs: Programs, live: LiveServer) -> None:
    jobs = [await live.app.enqueue("apart", {"n": n}) for n in range(3)]
    dying = await live.app.enqueue("die", max_attempts=9)
    program = programs.start()
    results = [await job.result(timeout=seconds_left()) for job in jobs]
    assert [result["value"] for result in results] == [0, 2, 4]
    assert all(result["pid"] != program.pid for result in results)
    assert [line.message for line in await jobs[0].logs()] == ["from a process of its own"]
    assert await final(dying) == "failed"
    error = (await dying.get()).error
    assert error is not None
    assert error["code"] == "quarantined"
    program.signal(signal.SIGTERM)
    assert await program.exit_code() == 0


@pytest.mark.parametrize("grace", ["0", "3600"])
async def test_sigterm_ends_it_in_time(programs: Programs, live: LiveServer, grace: str, tmp_path: Path) -> None:
    """Without a grace period the job is given back; with one, the handler may finish."""
    await end_by_sigterm(programs, live, grace, tmp_path / "gate")


@pytest.mark.timing
@pytest.mark.parametrize("grace", ["0", "3600"])
async def test_how_long_it_takes_to_end_by_sigterm(
    programs: Programs, live: LiveServer, grace: str, tmp_path: Path, figures: Figures
) -> None:
    took = await end_by_sigterm(programs, live, grace, tmp_path / "gate")
    figures.at_most(f"a runner with a grace period of {grace} s ends after", took, 4)


async def end_by_sigterm(programs: Programs, live: LiveServer, grace: str, gate: Path) -> float:
    """The seconds that it takes once no handler keeps it."""
    job = await live.app.enqueue("block_until", {"gate": str(gate)})
    program = programs.start("--grace", grace)
    await programs.noted()
    program.signal(signal.SIGTERM)
    if grace != "0":
        await asyncio.sleep(0.5)  # longer than the other one needs; whoever does not wait for the handler has ended it
        gate.touch()  # noqa: ASYNC240 - a test's own file
    freed = time.monotonic()
    assert await program.exit_code() == 0
    took = time.monotonic() - freed
    assert await job.status() == ("queued" if grace == "0" else "succeeded")
    return took


async def test_a_blocked_event_loop_keeps_its_lease_and_is_shown(
    programs: Programs, live: LiveServer, connect: Connect, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    job = await live.app.enqueue("hang_until", {"gate": str(gate)})
    programs.start("--lease", "8")
    connection = await connect()
    leases: set[Any] = set()

    async def named() -> Any:
        shown = await connection.fetchval("select job from fenceline.blocked_workers()")
        if shown is not None:
            leases.add(await connection.fetchval("select lease_until from fenceline.worker where runner"))
        return shown if len(leases) >= 3 else None

    # Each end of the lease is later than the one before: it is renewed, and renewed again.
    assert await until(named, "the loop is shown as blocked, and its lease is renewed twice") == job.id
    gate.touch()
    assert await job.result(timeout=seconds_left()) == "hung"
    assert await connection.fetchval("select count(*) from fenceline.history") == 1


async def test_a_loop_blocked_past_a_timeout_ends_that_job_and_gives_the_others_back(
    programs: Programs, live: LiveServer, connect: Connect
) -> None:
    neighbour = await live.app.enqueue("block", {"seconds": 3600}, max_attempts=1)
    program = programs.start("--lease", "60", "--grace", "0")
    await programs.noted()
    hung = await live.app.enqueue("hang", {"seconds": 3600}, timeout=1, max_attempts=1)
    await programs.noted(2)
    assert await final(hung) == "failed"
    assert ((await hung.get()).error or {})["code"] == "timeout"
    assert await neighbour.status() in ("queued", "claimed", "running"), "given back, with its one attempt"
    connection = await connect()
    outcomes = await connection.fetch("select outcome from fenceline.history where job_id = $1", parse_id(neighbour.id))
    assert [row["outcome"] for row in outcomes] == ["released"]
    assert "its event loop has been blocked for" in program.output()
    await asyncio.to_thread(program.kill)


async def test_a_death_is_told_at_once_and_a_poison_job_is_quarantined(
    programs: Programs, live: LiveServer, connect: Connect
) -> None:
    """The first death takes the program along; then the job has processes of its own, and others flow beside it."""
    job = await live.app.enqueue("die_together", max_attempts=9)
    connection = await connect()

    async def deaths() -> int:
        return int(await connection.fetchval("select count(*) from fenceline.history where outcome <> 'succeeded'"))

    async def told() -> bool:
        return await deaths() == 1

    program = programs.start("--lease", "3600", "--lanes", "default")
    assert await program.exit_code() == -signal.SIGKILL
    await until(told, "the death is told")  # not by the lease, which would end long after this test
    blocker = await live.app.enqueue("block", {"seconds": 3600})
    program = programs.start("--lease", "3600", "--lanes", "default")

    async def quarantined() -> bool:
        return await job.status() == "failed"

    await until(quarantined, "its own processes die")
    record = await job.get()
    assert (record.error or {})["code"] == "quarantined"
    assert await deaths() == 3

    async def beside() -> bool:  # the runner may have told of the deaths before it tells of this start
        return await blocker.status() == "running"

    await until(beside, "the runner lives, and has the other job")
    assert await (await live.app.enqueue("add", {"a": 1, "b": 2})).result(timeout=seconds_left()) == 3
    assert program.process.poll() is None
    await asyncio.to_thread(program.kill)


async def test_the_token_is_in_no_command_line(programs: Programs, live: LiveServer, token: str) -> None:
    await live.app.enqueue("block", {"seconds": 3600})
    program = programs.start()
    await programs.noted()

    async def helper() -> Any:
        return [pid for pid in program.children() if "lease_main" in command_line(pid)]

    [pid] = await until(helper, "the helper runs")
    assert token not in command_line(pid)
    assert token not in command_line(program.pid)
    await asyncio.to_thread(program.kill)


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_help_is_there() -> None:
    output = subprocess.run([FENCELINE, "runner", "--help"], capture_output=True, text=True, check=True).stdout
    for option in ("--url", "--token", "--lanes", "--name", "--grace", "--once", "--empty-exit"):
        assert option in output


async def test_no_form_of_a_secret_is_printed_logged_or_sent(
    programs: Programs, live: LiveServer, connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "vault.json").write_text(json.dumps({"deployer": {"token": SECRET}}))
    library_log = tmp_path / "library.log"
    program = programs.start(app="identity_app:app", VAULT=str(tmp_path / "vault.json"), LIBRARY_LOG=str(library_log))
    kinds = ("leak", "leak_blocking", "leak_result", "leak_encoded", "leak_encoded_blocking", "leak_encoded_isolated")
    jobs = [await live.app.enqueue(kind, identity="deployer") for kind in kinds]
    assert [await final(job) for job in jobs] == ["succeeded_with_errors", *["succeeded"] * 5]
    assert await final(await live.app.enqueue("leak_error", identity="deployer", max_attempts=1)) == "failed"
    program.signal(signal.SIGTERM)
    await program.exit_code()
    assert_nothing_readable(program.output(), "output of the runner")
    assert_nothing_readable(library_log.read_text(), "a log file")
    assert_nothing_readable(await everything(await connect()), "database")
    assert program.output().count("[redacted]") >= 3 * 40 * 4
