"""A seeded storm of faults over real worker processes, and the verdict of the ledger."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.checker import Broken, Ending, check, longest_gap
from tests.worker.fleet import Fleet, WorkerProcess, kill, until

KINDS = ("child killed", "supervisor killed", "child frozen", "backend terminated")


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
                "  violations  " + " ".join(f"{name} {per_invariant[name]}" for name in "LTFP"),
                *(f"    {broken.invariant}: {broken.what}" for broken in self.broken[:20]),
            ]
        )


class Storm:
    def __init__(self, fleet: Fleet, *, seed: int, workers: int = 2, processes: int = 2, lease: float = 2.0) -> None:
        self._fleet = fleet
        self._random = random.Random(seed)
        self._lease = lease
        self._processes = processes
        self._frozen: set[asyncio.Task[None]] = set()
        self._first = self._random.sample(KINDS, len(KINDS))
        self.report = Report(seed)
        for _ in range(workers):
            self._start()

    def _start(self) -> WorkerProcess:
        return self._fleet.start(
            "--lease", str(self._lease), "--processes", str(self._processes), "--concurrency", "8", "--threads", "4",
            "--grace", "5",
        )  # fmt: skip

    @property
    def _workers(self) -> list[WorkerProcess]:
        return [worker for worker in self._fleet.workers if worker.process.poll() is None]

    async def run(self, *, jobs: int, faults: int, most_seconds: float) -> Report:
        """Enqueue the jobs bit by bit, with a fault after each; then wait until everything has ended, and check."""
        began = time.monotonic()
        for worker in self._workers:
            await self._fleet.registered(worker)
        job_ids: list[int] = []
        for number in range(faults):
            share = jobs * (number + 1) // faults - len(job_ids)
            job_ids += await self._enqueue(share)
            await asyncio.sleep(self._random.uniform(0.1, 0.6))
            await self._inject()
            if time.monotonic() - began > most_seconds:
                break
        await asyncio.gather(*self._frozen)

        async def all_ended() -> bool:
            return int(await self._fleet.scalar("select count(*) from fenceline.history where final")) >= len(job_ids)

        try:
            await until(all_ended, "all jobs ended", seconds=max(30.0, most_seconds - (time.monotonic() - began)))
        except AssertionError:
            self.report.broken.append(Broken("P", "not all jobs ended in time"))
        await self._stop()
        await self._judge(job_ids)
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _enqueue(self, count: int) -> list[int]:
        blocking = count // 3
        options = {"max_attempts": 100}
        seconds = round(self._random.uniform(0.01, 0.15), 3)
        job_ids = await self._fleet.enqueue("nap", {"seconds": seconds}, count=count - blocking, **options)
        return job_ids + await self._fleet.enqueue("blocking_nap", {"seconds": seconds}, count=blocking, **options)

    # Faults ----------------------------------------------------------------------------------------------------------

    async def _inject(self) -> None:
        # Each kind once, then by chance.
        fault = self._first.pop() if self._first else self._random.choices(KINDS, weights=(4, 1, 2, 3))[0]
        match fault:
            case "backend terminated":
                ended = await self._terminate_a_backend()
            case "supervisor killed":
                worker = self._random.choice(self._workers)
                kill(worker.pid)
                worker.process.wait()
                self._start()
                ended = True
            case _:
                children = [pid for worker in self._workers for pid in worker.children()]
                ended = bool(children)
                if children and fault == "child killed":
                    kill(self._random.choice(children))
                elif children:
                    task = asyncio.create_task(self._freeze(self._random.choice(children)))
                    self._frozen.add(task)
        if ended:
            self.report.faults[fault] += 1

    async def _freeze(self, pid: int) -> None:
        kill(pid, signal.SIGSTOP)
        await asyncio.sleep(self._lease * self._random.uniform(1.1, 1.8))
        kill(pid, signal.SIGCONT)

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
        report.longest_gap = longest_gap(ledger)
        report.broken += check(job_ids, ledger, history, self._lease)
