"""What a machine takes with it when it dies: attempts that had started count, those that were only fetched do not."""

import os
import signal
from collections import Counter
from contextlib import suppress

from tests.worker.fleet import Fleet, WorkerProcess, is_alive, until

#: No lease ends by itself: a slow machine would lose a short one.
LEASE = 3600.0
ONE_ATTEMPT = 1

#: Handlers that are over at once, so that the worker fetches ahead, until a file tells them to stay.
FETCHING_APP = """
import asyncio, os
from pathlib import Path
from fenceline.engine import claim_policy
from sample_app import app, note

claim_policy.QUICK_SECONDS = 60.0  # on any machine

@app.job()
async def pass_or_stay(gate: str, *, ctx):
    note("start", ctx)
    while Path(gate).exists():
        await asyncio.sleep(0.02)

@app.job()
async def kill_the_machine(*, ctx):
    note("start", ctx)
    os.kill(os.getppid(), 9)
    os.kill(os.getpid(), 9)
"""


async def kill_the_machine(fleet: Fleet) -> None:
    """Supervisor and children die together: nobody is left to tell."""
    worker = fleet.workers[-1]
    pids = [worker.pid, *worker.children()]
    for pid in pids:
        with suppress(ProcessLookupError):  # children die with their supervisor
            os.kill(pid, signal.SIGKILL)

    async def gone() -> bool:
        return not any(is_alive(pid) for pid in pids)

    await until(gone, "the machine is dead")
    await end_leases(fleet)


async def end_leases(fleet: Fleet) -> None:
    """Time passes: the leases of all workers are over."""
    for pid in await fleet.live_pids():
        await fleet.end_lease(pid)


def start_worker(fleet: Fleet) -> WorkerProcess:
    (fleet.folder / "fetching_app.py").write_text(FETCHING_APP)
    return fleet.start("--lease", str(LEASE), "--concurrency", "2", app="fetching_app:app")


async def started_worker(fleet: Fleet) -> None:
    await fleet.registered(start_worker(fleet))


async def fetch_ahead_and_die(fleet: Fleet, *, max_attempts: int) -> tuple[list[int], set[int]]:
    """A worker that runs two jobs of those that it holds when its machine dies: all jobs, and the two."""
    gate = fleet.folder / "gate"
    await started_worker(fleet)
    await fleet.enqueue("pass_or_stay", {"gate": "none"}, count=400, max_attempts=5)
    await fleet.ended(400)
    passed = len(fleet.ledger())
    gate.touch()
    jobs = await fleet.enqueue("pass_or_stay", {"gate": str(gate)}, count=50, max_attempts=max_attempts)
    await fleet.handlers(passed + 2)

    async def fetched() -> bool:
        return int(await fleet.scalar("select count(*) from fenceline.running")) > 2

    await until(fetched, "more are fetched than run")
    await kill_the_machine(fleet)
    started = {line.job_id for line in fleet.ledger()} & set(jobs)
    assert len(started) == 2
    gate.unlink()
    return jobs, started


def starts(fleet: Fleet, jobs: list[int]) -> Counter[int]:
    counted = Counter(line.job_id for line in fleet.ledger())
    return Counter({job_id: counted[job_id] for job_id in jobs})


async def test_jobs_that_were_only_fetched_lose_no_attempt_with_their_machine(fleet: Fleet) -> None:
    """With a single attempt: whoever had started is lost, and nobody else; nobody starts twice."""
    jobs, started = await fetch_ahead_and_die(fleet, max_attempts=ONE_ATTEMPT)
    await started_worker(fleet)
    await fleet.ended(400 + 50)
    assert set(starts(fleet, jobs).values()) == {1}
    outcomes = {job_id: (await fleet.history(job_id))[-1]["outcome"] for job_id in jobs}
    assert {job_id for job_id, outcome in outcomes.items() if outcome == "failed"} == started
    assert set(outcomes.values()) == {"failed", "succeeded"}


async def test_jobs_that_were_only_fetched_keep_all_their_attempts(fleet: Fleet) -> None:
    jobs, started = await fetch_ahead_and_die(fleet, max_attempts=3)
    await started_worker(fleet)
    await fleet.ended(400 + 50)
    for job_id in set(jobs) - started:
        assert (await fleet.history(job_id))[-1]["number"] == 1


async def test_a_job_that_takes_its_machine_down_at_once_is_counted(fleet: Fleet) -> None:
    """Its first start is not told in time; all later ones are told before."""
    [poison] = await fleet.enqueue("kill_the_machine", max_attempts=2)
    for run in (1, 2, 3):
        worker = start_worker(fleet)  # it may be dead before anybody sees that it has registered
        await fleet.handlers(run)
        await worker.exit_code()
        await end_leases(fleet)
    await started_worker(fleet)
    await fleet.ended(1)
    assert len(fleet.ledger()) == 3, "at most one more than its attempts"
    assert (await fleet.history(poison))[-1]["outcome"] == "failed"
