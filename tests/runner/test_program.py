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
    assert await good.result(timeout=1) == 3
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
    results = [await job.result(timeout=60) for job in jobs]
    assert [result["value"] for result in results] == [0, 2, 4]
    assert all(result["pid"] != program.pid for result in results)
    assert [line.message for line in await jobs[0].logs()] == ["from a process of its own"]
    assert await final(dying) == "failed"
    error = (await dying.get()).error
    assert error is not None
    assert error["code"] == "quarantined"
    program.signal(signal.SIGTERM)
    assert await program.exit_code() == 0


@pytest.mark.parametrize("grace", ["0", "20"])
async def test_sigterm_ends_it_in_time(programs: Programs, live: LiveServer, grace: str) -> None:
    job = await live.app.enqueue("block", {"seconds": 1.5 if grace == "20" else 60})
    program = programs.start("--grace", grace)
    await programs.noted()
    asked = time.monotonic()
    program.signal(signal.SIGTERM)
    assert await program.exit_code() == 0
    assert time.monotonic() - asked < (0 if grace == "0" else 1.5) + 4  # two, and a busy machine
    assert await job.status() == ("queued" if grace == "0" else "succeeded")


async def test_a_blocked_event_loop_keeps_its_lease_and_is_shown(
    programs: Programs, live: LiveServer, connect: Connect, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    job = await live.app.enqueue("hang_until", {"gate": str(gate)})
    programs.start("--lease", "4")  # shorter than the loop is blocked, longer than a busy machine pauses
    connection = await connect()

    async def named() -> Any:
        return await connection.fetchval("select job from fenceline.blocked_workers() where seconds > 5")

    assert await until(named, "the loop is shown as blocked", seconds=60) == job.id
    gate.touch()
    assert await job.result(timeout=60) == "hung"
    assert await connection.fetchval("select count(*) from fenceline.history") == 1


async def test_a_loop_blocked_past_a_timeout_ends_that_job_and_gives_the_others_back(
    programs: Programs, live: LiveServer, connect: Connect
) -> None:
    neighbour = await live.app.enqueue("block", {"seconds": 60}, max_attempts=1)
    program = programs.start("--lease", "60", "--grace", "0")
    await programs.noted()
    hung = await live.app.enqueue("hang", {"seconds": 60}, timeout=1, max_attempts=1)
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

    program = programs.start("--lease", "60", "--lanes", "default")
    assert await program.exit_code() == -signal.SIGKILL
    await until(told, "the death is told")  # long before the lease of 60 seconds ends
    blocker = await live.app.enqueue("block", {"seconds": 60})
    program = programs.start("--lease", "60", "--lanes", "default")

    async def quarantined() -> bool:
        return await job.status() == "failed"

    await until(quarantined, "its own processes die", seconds=60)
    record = await job.get()
    assert (record.error or {})["code"] == "quarantined"
    assert await deaths() == 3
    assert await blocker.status() == "running", "the runner lives"
    assert program.process.poll() is None
    await asyncio.to_thread(program.kill)


async def test_the_token_is_in_no_command_line(programs: Programs, live: LiveServer, token: str) -> None:
    await live.app.enqueue("block", {"seconds": 4})
    program = programs.start("--lease", "5")
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
