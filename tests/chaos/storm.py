"""A seeded storm of faults over real worker processes, and the verdict of the ledger."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import asyncpg
from tests.chaos.checker import Batch, Broken, Ending, check, longest_gap, longest_silence
from tests.client.proxy import Proxy
from tests.worker.fleet import Fleet, WorkerProcess, kill, until
from tests.worker.own_server import OwnServer

KINDS = {
    "child killed": 4,
    "supervisor killed": 1,
    "child frozen": 2,
    "backend terminated": 3,
    "line cut": 2,
    "partition": 2,
}
#: Only where the server is the storm's own.
SERVER_KINDS = {"server restarted": 1, "server crashed": 1}
#: After so many faults there is time to recover in.
FAULTS_PER_CALM = 8
CALM_SECONDS = 6.0


@dataclass(slots=True)
class Report:
    seed: int
    jobs: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    refused: int = 0
    longest_gap: float = 0.0
    longest_silence: float = 0.0
    broken: list[Broken] = field(default_factory=list)

    def __str__(self) -> str:
        per_invariant = Counter(broken.invariant for broken in self.broken)
        counts = " · ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        return "\n".join(
            [
                f"seed {self.seed}: {self.jobs} jobs, {self.faults.total()} faults in {self.seconds:.1f} s",
                f"  faults      {counts}",
                f"  attempts    {self.attempts} ended: {dict(self.outcomes)}; {self.refused} stale writes refused",
                f"  longest gap {self.longest_gap:.2f} s",
                f"  silence     {self.longest_silence:.2f} s at most, of a lane with jobs, after a fault was over",
                "  violations  " + " ".join(f"{name} {per_invariant[name]}" for name in "LTFPSE"),
                *(f"    {broken.invariant}: {broken.what}" for broken in self.broken[:20]),
            ]
        )


class Storm:
    """`proxy`: half of the workers reach the database through it. `server`: may be restarted and crashed."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        seed: int,
        workers: int = 2,
        processes: int = 2,
        lease: float = 2.0,
        silence: float = 5.0,
        proxy: Proxy | None = None,
        server: OwnServer | None = None,
    ) -> None:
        self._fleet = fleet
        self._random = random.Random(seed)
        self._lease = lease
        self._silence = silence
        self._processes = processes
        self._proxy = proxy
        self._server = server
        self._frozen: set[asyncio.Task[None]] = set()
        self._kinds = dict(KINDS) | (SERVER_KINDS if server else {})
        if proxy is None:
            del self._kinds["line cut"], self._kinds["partition"]
        self._first = self._random.sample(list(self._kinds), len(self._kinds))
        self._killed: set[int] = set()
        self._batches: list[Batch] = []
        self._over: list[float] = []
        self.report = Report(seed)
        for number in range(workers):
            self._start(through_proxy=number % 2 == 1)

    def _start(self, *, through_proxy: bool) -> WorkerProcess:
        return self._fleet.start(
            "--lease", str(self._lease), "--processes", str(self._processes), "--concurrency", "8", "--threads", "4",
            "--grace", "5", dsn=self._proxy.dsn if self._proxy and through_proxy else None,
        )  # fmt: skip

    @property
    def _workers(self) -> list[WorkerProcess]:
        return [worker for worker in self._fleet.workers if worker.process.poll() is None]

    async def run(self, *, jobs: int, faults: int, most_seconds: float) -> Report:
        """Enqueue the jobs bit by bit, with a fault after each; then wait until everything has ended, and check."""
        began = time.monotonic()
        for worker in self._workers:
            await self._fleet.registered(worker)
        await self._fleet.set_lane("interactive", slots=None)
        job_ids: list[int] = []
        for number in range(faults):
            share = jobs * (number + 1) // faults - len(job_ids)
            job_ids += await self._enqueue(share)
            await asyncio.sleep(self._random.uniform(0.1, 0.6))
            await self._inject()
            if number % FAULTS_PER_CALM == FAULTS_PER_CALM - 1:
                await asyncio.sleep(CALM_SECONDS)
            if time.monotonic() - began > most_seconds:
                break
        await asyncio.gather(*self._frozen)

        async def all_ended() -> bool:
            return int(await self._fleet.scalar("select count(*) from fenceline.history where final")) >= len(job_ids)

        try:
            async with asyncio.timeout(max(30.0, most_seconds - (time.monotonic() - began))):
                await until(all_ended, "all jobs ended")
        except (AssertionError, TimeoutError):
            self.report.broken.append(Broken("P", "not all jobs ended in time"))
        await self._stop()
        await self._judge(job_ids)
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _enqueue(self, count: int) -> list[int]:
        seconds = round(self._random.uniform(0.01, 0.15), 3)
        job_ids: list[int] = []
        for kind, lane, share in (
            ("blocking_nap", "default", count // 3),
            ("nap", "interactive", count // 3),
            ("nap", "default", count - 2 * (count // 3)),
        ):
            made = await self._fleet.enqueue(kind, {"seconds": seconds}, count=share, max_attempts=100, lane=lane)
            self._batches.append(Batch(lane, time.monotonic(), made))
            job_ids += made
        return job_ids

    # Faults ----------------------------------------------------------------------------------------------------------

    async def _inject(self) -> None:
        # Each kind once, then by chance.
        kinds = self._kinds
        fault = self._first.pop() if self._first else self._random.choices([*kinds], weights=[*kinds.values()])[0]
        while not await self._strike(fault):
            if not self._workers:
                return
            await asyncio.sleep(0.1)  # nothing was there to be hit: those that are starting will be
        self.report.faults[fault] += 1
        self._over.append(time.monotonic())

    async def _strike(self, fault: str) -> bool:
        """Whether it hit something."""
        match fault:
            case "backend terminated":
                return await self._terminate_a_backend()
            case "supervisor killed":
                worker = self._random.choice(self._workers)
                kill(worker.pid)
                worker.process.wait()
                self._killed.add(worker.pid)
                self._start(through_proxy=self._random.random() < 0.5)
                return True
            case "line cut" | "partition":
                return await self._part(fault)
            case "server restarted" | "server crashed":
                return await self._restart("fast" if fault == "server restarted" else "immediate")
            case _:
                children = [pid for worker in self._workers for pid in worker.children()]
                if children and fault == "child killed":
                    kill(self._random.choice(children))
                elif children:
                    task = asyncio.create_task(self._freeze(self._random.choice(children)))
                    self._frozen.add(task)
                return bool(children)

    async def _part(self, fault: str) -> bool:
        assert self._proxy is not None
        if fault == "line cut":
            await self._proxy.cut()
        else:
            self._proxy.stall()
            await asyncio.sleep(self._random.uniform(0.5, 2.0) * self._lease)
            self._proxy.flow()
        return True

    async def _restart(self, mode: Literal["fast", "immediate"]) -> bool:
        assert self._server is not None
        await asyncio.to_thread(self._server.stop, mode)
        await asyncio.sleep(self._random.uniform(0.0, 1.0))
        await asyncio.to_thread(self._server.start)
        self._fleet.connection.terminate()
        self._fleet.connection = await asyncpg.connect(self._fleet.dsn)
        return True

    async def _freeze(self, pid: int) -> None:
        kill(pid, signal.SIGSTOP)
        await asyncio.sleep(self._lease * self._random.uniform(1.1, 1.8))
        kill(pid, signal.SIGCONT)
        self._over.append(time.monotonic())

    async def _terminate_a_backend(self) -> bool:
        rows = await self._fleet.connection.fetch(
            "select pid from pg_stat_activity where datname = current_database() "
            "and application_name = 'fenceline' order by pid"
        )
        if not rows:
            return False
        return bool(
            await self._fleet.scalar("select pg_terminate_backend($1)", self._random.choice([r["pid"] for r in rows]))
        )

    # The verdict -----------------------------------------------------------------------------------------------------

    async def _stop(self) -> None:
        workers = self._workers
        for worker in self._fleet.workers:
            if worker not in workers and worker.pid not in self._killed:
                self.report.broken.append(Broken("E", f"a worker has ended by itself: {worker.output()[-500:]}"))
        for worker in workers:
            os.kill(worker.pid, signal.SIGTERM)
        for worker in workers:
            await worker.exit_code()

    async def _judge(self, job_ids: list[int]) -> None:
        rows = await self._fleet.history()
        history = [
            Ending(row["job_id"], str(row["attempt_id"]), row["token"], row["outcome"], row["final"]) for row in rows
        ]
        ledger = self._fleet.ledger()
        report = self.report
        report.jobs = len(job_ids)
        report.attempts = len(history)
        report.outcomes = Counter(ending.outcome for ending in history)
        report.refused = sum(worker.output().count("stale_attempt") for worker in self._fleet.workers)
        report.longest_gap = longest_gap(ledger, self._over)
        report.longest_silence = longest_silence(ledger, self._batches, self._over)
        report.broken += check(job_ids, ledger, history, self._lease, self._over)
        if report.longest_silence > self._silence:
            report.broken.append(Broken("S", f"a lane was silent for {report.longest_silence:.1f} s after a fault"))
