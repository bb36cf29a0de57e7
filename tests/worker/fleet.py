"""Real worker processes, started in a folder of their own, and what a test must know about them."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

FENCELINE = Path(sysconfig.get_path("scripts")) / "fenceline"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the ledger that handlers write."""

    word: str
    job_id: int
    attempt_id: str
    token: int
    pid: int
    at: float


async def until(condition: Callable[[], Awaitable[Any]], what: str, *, seconds: float = 30.0) -> Any:
    """Wait until a condition holds; its value is returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = await condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        await asyncio.sleep(0.02)


class WorkerProcess:
    """`fenceline worker` with its children."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)

    @property
    def pid(self) -> int:
        return self.process.pid

    def children(self) -> list[int]:
        try:
            return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        except FileNotFoundError:
            return []

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def exit_code(self, seconds: float = 30.0) -> int:
        async def ended() -> bool:
            return self.process.poll() is not None

        try:
            await until(ended, "the worker ends", seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output()}") from error
        return int(self.process.returncode)

    def output(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        """End it and its children, whatever they do."""
        for pid in [*self.children(), self.pid]:
            kill(pid)
        self.process.wait()


class Fleet:
    """The workers of one test, on one database."""

    def __init__(self, dsn: str, folder: Path, connection: Connection) -> None:
        self.dsn = dsn
        self.folder = folder
        self.connection = connection
        self.ledger_file = folder / "ledger"
        self.workers: list[WorkerProcess] = []
        self.app = "sample_app:app"
        shutil.copy(Path(__file__).with_name("sample_app.py"), folder / "sample_app.py")

    def start(self, *options: str, app: str | None = None, dsn: str | None = None) -> WorkerProcess:
        """Start `fenceline worker`; `started` waits until its children are registered."""
        environment = {**os.environ, "FENCELINE_DSN": dsn or self.dsn, "LEDGER": str(self.ledger_file)}
        command = [str(FENCELINE), "worker", app or self.app, *options]
        worker = WorkerProcess(command, self.folder, environment, self.folder / f"worker{len(self.workers)}.log")
        self.workers.append(worker)
        return worker

    async def started(
        self, *options: str, children: int = 1, app: str | None = None, dsn: str | None = None
    ) -> WorkerProcess:
        worker = self.start(*options, app=app, dsn=dsn)
        await self.registered(worker, children)
        return worker

    async def registered(self, worker: WorkerProcess, children: int = 1) -> list[int]:
        """The pids of its children, once so many are registered."""

        async def pids() -> list[int]:
            if worker.process.poll() is not None:
                raise AssertionError(f"the worker ended: {worker.output()}")
            live = set(await self.live_pids())
            registered = [pid for pid in worker.children() if pid in live]
            return registered if len(registered) >= children else []

        try:
            found: list[int] = await until(pids, f"{children} children registered", seconds=30)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{worker.output()}") from error
        return found

    async def live_pids(self) -> list[int]:
        rows = await self.connection.fetch("select pid from fenceline.worker where stopped_at is null")
        return [row["pid"] for row in rows]

    def patch(self, code: str) -> None:
        """Make an app that is the sample app, with some rule of Fenceline taken out, and let workers run that."""
        (self.folder / "patched_app.py").write_text(f"from sample_app import app\n{code}")
        self.app = "patched_app:app"

    async def waiting(self, lane: str, count: int = 1) -> None:
        """Until so many workers have said that they wait for the lane."""

        async def enough() -> bool:
            return int(await self.scalar("select count(*) from fenceline.waiter where lane = $1", lane)) >= count

        await until(enough, f"{count} workers wait for {lane}")

    def ledger(self) -> list[Line]:
        if not self.ledger_file.exists():
            return []
        lines = []
        for text in self.ledger_file.read_text().splitlines():
            word, job_id, attempt_id, token, pid, at = text.split()
            lines.append(Line(word, int(job_id), attempt_id, int(token), int(pid), float(at)))
        return lines

    async def handlers(self, count: int, *, word: str = "start", seconds: float = 30.0) -> list[Line]:
        """The ledger's lines with that word, once there are so many."""

        async def enough() -> list[Line]:
            lines = [line for line in self.ledger() if line.word == word]
            return lines if len(lines) >= count else []

        found: list[Line] = await until(enough, f"{count} handlers {word}", seconds=seconds)
        return found

    async def enqueue(
        self, kind: str, args: dict[str, Any] | None = None, *, count: int = 1, **options: Any
    ) -> list[int]:
        """Enqueue equal jobs; their ids."""
        job_ids: list[int] = await self.scalar(
            "select job_ids from fenceline.enqueue_many($1, cast($2 as json[]), cast($3 as json))",
            kind,
            [json.dumps(args or {})] * count,
            json.dumps(options),
        )
        return job_ids

    async def set_lane(self, name: str, **changes: Any) -> None:
        await self.scalar("select fenceline.set_lane($1, $2)", name, json.dumps(changes))

    # What the database says ------------------------------------------------------------------------------------------

    async def scalar(self, sql: str, *parameters: Any) -> Any:
        return await self.connection.fetchval(sql, *parameters)

    async def history(self, job_id: int | None = None) -> list[asyncpg.Record]:
        return list(
            await self.connection.fetch(
                "select * from fenceline.history where $1::bigint is null or job_id = $1 order by token", job_id
            )
        )

    async def ended(self, count: int, *, seconds: float = 60.0) -> None:
        """Until so many jobs have ended for good."""

        async def enough() -> bool:
            return int(await self.scalar("select count(*) from fenceline.history where final")) >= count

        try:
            await until(enough, f"{count} jobs ended", seconds=seconds)
        except AssertionError as error:
            outcomes = Counter((row["outcome"], row["final"]) for row in await self.history())
            logs = "\n".join(worker.output()[-3000:] for worker in self.workers)
            raise AssertionError(f"{error}; history: {outcomes}\n{logs}") from error

    async def each_has_one_final_row(self, count: int) -> None:
        rows = await self.connection.fetch(
            "select job_id, count(*) filter (where final) as finals from fenceline.history group by job_id"
        )
        assert len(rows) == count
        assert {row["finals"] for row in rows} == {1}

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has died and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False
