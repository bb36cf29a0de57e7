"""What happens in the demo, act by act."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fenceline.app import Fenceline
from fenceline.cli.demo.app import app
from fenceline.cli.demo.fleet import LEASE_SECONDS, DemoWorker
from fenceline.cli.demo.ledger import Ending, Ledger, check
from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import handler_parts
from fenceline.database.call import Call
from fenceline.database.embedded import EmbeddedPostgres
from fenceline.errors import FencelineError

SLOTS = 60
THROTTLED_SLOTS = 4
THROTTLE_SECONDS = 3.0
QUICK_SECONDS = 0.06
#: Jobs of the frozen worker: over before it wakes up, and again under way elsewhere at that time.
SLOW_SECONDS = LEASE_SECONDS + 0.5
SLOW_JOBS = 30
#: So long an act may take on a machine that has much else to do.
PATIENCE_SECONDS = 300.0
#: So many disagreements are shown.
SHOWN = 10

ENDINGS_SQL = """
select j.id, a.attempt_id::text, a.token, a.outcome, a.final, case when a.final then o.result end
from unnest($1::bigint[]) j (id)
cross join lateral fenceline.list_attempts(j.id) a
left join fenceline.outcomes($1) o on o.job_id = j.id
where a.ended_at is not null
"""


class DemoStuck(FencelineError):
    """What the demo waits for does not happen."""


async def play(console: Console, dsn: str | None, jobs: int) -> bool:
    """Whether the ledger holds."""
    with tempfile.TemporaryDirectory(prefix="fenceline-demo-") as name:
        folder = Path(name)
        async with _database(console, dsn, folder) as found:
            return await Play(console, found, folder, jobs).run()


@asynccontextmanager
async def _database(console: Console, dsn: str | None, folder: Path) -> AsyncIterator[str]:
    if dsn is not None:
        yield dsn
        return
    server = EmbeddedPostgres(folder / "db")
    with console.status("starting PostgreSQL …"):
        own = await asyncio.to_thread(server.start)
        async with Fenceline(own) as fresh:
            await fresh.migrate()
    try:
        yield own
    finally:
        await asyncio.to_thread(server.stop)


class Play:
    def __init__(self, console: Console, dsn: str, folder: Path, jobs: int) -> None:
        self._console = console
        self._dsn = dsn
        self._folder = folder
        self._jobs = jobs
        self._ledger = Ledger(folder / "ledger")
        self._workers: list[DemoWorker] = []
        self._app = Fenceline(dsn)
        self._quick: list[int] = []
        self._slow: list[int] = []
        self._wrong: list[str] = []
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self._bar: TaskID | None = None

    async def run(self) -> bool:
        began = time.monotonic()
        async with self._app:
            try:
                with self._progress:
                    await self._enqueue()
                    await self._start_workers()
                    await self._throttle()
                    await self._kill_one()
                    await self._freeze_one()
                    await self._finish()
                await self._stop()
                return await self._judge(time.monotonic() - began)
            finally:
                for worker in self._workers:
                    worker.kill()

    # Acts ------------------------------------------------------------------------------------------------------------

    async def _enqueue(self) -> None:
        # Drained until all workers are there: the first must not do all jobs while another still starts.
        await self._app.lanes.set("demo", slots=SLOTS, enabled=False, actor="demo")
        await self._app.lanes.set("demo.slow", slots=None, actor="demo")
        self._quick = await self._make("demo.quick", self._jobs - SLOW_JOBS, QUICK_SECONDS)
        self._say(f"{self._jobs:,} jobs, {SLOW_JOBS} of them slow; handlers write a ledger outside the queue")
        self._bar = self._progress.add_task("jobs done", total=self._jobs)

    async def _start_workers(self) -> None:
        self._workers = [
            DemoWorker(name, self._dsn, self._folder, self._ledger.path) for name in ("ada", "bob", "cleo")
        ]
        await self._until(self._all_registered, "all workers are registered")
        await self._app.lanes.resume("demo", actor="demo")
        self._say(f"3 workers, lane demo with {SLOTS} slots for all of them together")

    async def _throttle(self) -> None:
        await self._until_done(0.1)
        await self._app.lanes.set("demo", slots=THROTTLED_SLOTS, actor="demo")
        self._say(f"lane throttled live: {SLOTS} → {THROTTLED_SLOTS} slots")
        # A lower limit stops nothing: what was claimed before it still runs.
        await self._until(self._throttled, "the lane is within its new limit")
        since = time.monotonic()
        await self._watch(THROTTLE_SECONDS)
        until = time.monotonic()
        await self._app.lanes.set("demo", slots=SLOTS, actor="demo")
        self._ledger.refresh()
        most = self._ledger.most_at_once(set(self._quick), since, until)
        if most > THROTTLED_SLOTS:
            self._wrong.append(f"{most} handlers ran at once in a lane throttled to {THROTTLED_SLOTS} slots")
        self._say(f"never more than {most} at once; back to {SLOTS} slots")

    async def _kill_one(self) -> None:
        await self._until_done(0.3)
        worker = self._workers[0]
        worker.kill()
        self._say(f"worker {worker.name} killed with kill -9; what it held comes back when its lease ends")

    async def _freeze_one(self) -> None:
        self._slow = await self._make("demo.slow", SLOW_JOBS, SLOW_SECONDS, priority=10)
        slow = set(self._slow)
        await self._until(lambda: any(len(held) > 1 for held in self._ledger.at_work(slow).values()), "slow jobs run")
        pid, held = max(self._ledger.at_work(slow).items(), key=lambda item: len(item[1]))
        [worker] = [worker for worker in self._workers if worker.owns(pid)]
        worker.freeze(pid)
        self._say(f"worker {worker.name} frozen (SIGSTOP) in the middle of {len(held)} slow jobs")
        frozen = {line.job_id for line in held}
        first = {line.attempt_id for line in held}
        await self._until(
            lambda: any(
                line.word == "start" and line.job_id in frozen and line.attempt_id not in first
                for line in self._ledger.lines
            ),
            "another worker takes over the jobs of the frozen one",
        )
        # As late as it can be while the others are still at it.
        await self._watch(max(0.0, max(line.at for line in held) + SLOW_SECONDS + 0.1 - time.monotonic()))
        refused = worker.refused()
        worker.thaw_child()
        self._say(f"its jobs run elsewhere; {worker.name} thawed (SIGCONT), and writes what it has")
        await self._until(lambda: self._writes_came(worker, refused, list(frozen)), "the thawed worker writes")
        worker.thaw()

    async def _finish(self) -> None:
        await self._until_done(1.0)

        deadline = time.monotonic() + PATIENCE_SECONDS
        while await app_parts(self._app).database().call(_count_ended(self._job_ids)) < self._jobs:
            if time.monotonic() > deadline:
                self._wrong.append("the queue does not say of every job that it has ended")
                return
            await self._watch(0.1)

    async def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            await asyncio.to_thread(worker.process.wait, PATIENCE_SECONDS)

    # The ledger ------------------------------------------------------------------------------------------------------

    async def _judge(self, seconds: float) -> bool:
        self._ledger.refresh()
        endings = await app_parts(self._app).database().call(_endings(self._job_ids))
        wrong = self._wrong + check(self._job_ids, self._ledger.lines, endings)
        finals = [ending for ending in endings if ending.final]
        done = sum(ending.outcome == "succeeded" for ending in finals)
        lost = len(set(self._job_ids) - {ending.job_id for ending in finals})
        repeated = sum(not ending.final for ending in endings)
        refused = sum(worker.refused() for worker in self._workers)
        if refused == 0:
            wrong.append("the frozen worker's writes were not refused")
        self._console.print(
            f"[bold]{'Ledger clean' if not wrong else 'The ledger does not hold'}[/]: {done:,} done, {lost:,} lost, "
            f"{refused:,} stale writes refused; {repeated:,} attempts taken over; {seconds:.0f} s"
        )
        for line in wrong[:SHOWN]:
            self._console.print(f"  [red]✗[/] {line}")
        if len(wrong) > SHOWN:
            self._console.print(f"  [red]✗[/] and {len(wrong) - SHOWN:,} more")
        return not wrong

    # Waiting, and saying so ------------------------------------------------------------------------------------------

    @property
    def _job_ids(self) -> list[int]:
        return self._quick + self._slow

    async def _make(self, kind: str, count: int, seconds: float, *, priority: int = 0) -> list[int]:
        lane = str(handler_parts(app_parts(app).handlers[kind]).kind_settings["lane"])
        args = [json.dumps({"seconds": seconds})] * count
        return await app_parts(self._app).database().call(_enqueue(kind, args, priority, lane))

    async def _all_registered(self) -> bool:
        records = await self._app.system.workers()
        return all(
            any(record.pid is not None and worker.owns(record.pid) for record in records) for worker in self._workers
        )

    async def _throttled(self) -> bool:
        return (await self._app.lanes.get("demo")).in_use <= THROTTLED_SLOTS

    async def _writes_came(self, worker: DemoWorker, refused: int, job_ids: list[int]) -> bool:
        """More were refused than before; or, where nothing refuses them, one has ended a job."""
        if worker.refused() > refused:
            return True
        endings = await app_parts(self._app).database().call(_endings(job_ids))
        return any(ending.final for ending in endings)

    async def _until_done(self, share: float) -> None:
        goal = int(share * self._jobs)
        await self._until(lambda: len(self._ledger.done) >= goal, f"{goal:,} jobs are done")

    async def _until(self, condition: Callable[[], bool | Awaitable[bool]], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (await holds if isinstance(holds := condition(), Awaitable) else holds):
            if time.monotonic() > deadline:
                said = [worker.last_words() for worker in self._workers if not worker.alive]
                raise DemoStuck(f"waited {PATIENCE_SECONDS:.0f} s in vain until {what}; {' '.join(said)}")
            await self._watch(0.02)

    async def _watch(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self._ledger.refresh()
            if self._bar is not None:
                self._progress.update(self._bar, completed=len(self._ledger.done))
            left = deadline - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(left, 0.05))

    def _say(self, text: str) -> None:
        self._progress.console.print(f"• {text}")


def _enqueue(kind: str, args: list[str], priority: int, lane: str) -> Call[list[int]]:
    options = json.dumps({"priority": priority, "lane": lane, "max_attempts": 20})
    return Call(
        "select job_ids from fenceline.enqueue_many($1, cast($2 as json[]), cast($3 as json), 'demo')",
        (kind, args, options),
        lambda rows: list(rows[0][0]),
    )


def _count_ended(job_ids: list[int]) -> Call[int]:
    return Call(
        "select count(*) from fenceline.outcomes($1) where status is not null",
        (job_ids,),
        lambda rows: int(rows[0][0]),
        repeatable=True,
    )


def _endings(job_ids: list[int]) -> Call[list[Ending]]:
    return Call(
        ENDINGS_SQL,
        (job_ids,),
        lambda rows: [
            Ending(row[0], row[1], row[2], row[3], row[4], None if row[5] is None else json.loads(row[5]))
            for row in rows
        ],
        repeatable=True,
    )
