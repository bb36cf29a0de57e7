"""Real worker processes, started in a folder of their own, and what a test must know about them."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
from tests.support.patience import eventually

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


async def until(condition: Callable[[], Awaitable[Any]], what: str, last: Callable[[], object] | None = None) -> Any:
    """Wait until a condition holds; its value is returned."""
    return await eventually(condition, what, last)


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

    async def exit_code(self) -> int:
        async def ended() -> bool:
            return self.process.poll() is not None

        await until(ended, "the worker ends", self.output)
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
        """The pids of its children, once so many are registered and their supervisor knows that it has some."""

        async def pids() -> list[int]:
            if worker.process.poll() is not None:
                raise AssertionError(f"the worker ended: {worker.output()}")
            live = set(await self.live_pids())
            registered = [pid for pid in worker.children() if pid in live]
            return registered if len(registered) >= children and "started: " in worker.output() else []

        found: list[int] = await until(pids, f"{children} children registered", worker.output)
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
        written, _, _ = self.ledger_file.read_text().rpartition("\n")  # not the line that is being written
        for text in written.splitlines():
            word, job_id, attempt_id, token, pid, at = text.split()
            lines.append(Line(word, int(job_id), attempt_id, int(token), int(pid), float(at)))
        return lines

    async def handlers(self, count: int, *, word: str = "start") -> list[Line]:
        """The ledger's lines with that word, once there are so many."""

        async def enough() -> list[Line]:
            lines = [line for line in self.ledger() if line.word == word]
            return lines if len(lines) >= count else []

        found: list[Line] = await until(enough, f"{count} handlers {word}", self.ledger)
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

    async def ended(self, count: int) -> None:
        """Until so many jobs have ended for good."""

        async def enough() -> bool:
            return int(await self.scalar("select count(*) from fenceline.history where final")) >= count

        try:
            await until(enough, f"{count} jobs ended")
        except AssertionError as error:
            outcomes = Counter((row["outcome"], row["final"]) for row in await self.history())
            logs = "\n".join(worker.output()[-3000:] for worker in self.workers)
            raise AssertionError(f"{error}; history: {outcomes}\n{logs}") from error

    async def end_lease(self, pid: int) -> None:
        """The lease of a process that does not renew it is over now, however long it was to be."""
        await self.connection.execute(
            "update fenceline.worker set lease_until = clock_timestamp() where pid = $1 and stopped_at is null", pid
        )

    async def renewed(self, pid: int, times: int) -> None:
        """Until the lease of a process has been renewed so many times from now on, or is lost."""

        async def until_when() -> Any:
            return await self.scalar("select lease_until from fenceline.worker where pid = $1 order by id desc", pid)

        before = await until_when()
        for number in range(1, times + 1):

            async def again(before: Any = before) -> Any:
                now = await until_when()
                is_lost = pid not in await self.live_pids()
                return now if is_lost or now > before else None

            before = await until(again, f"the lease of {pid} is renewed for the {number}. time")

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
