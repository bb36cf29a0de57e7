"""Real worker processes that are killed or told to stop in the middle of things."""

import asyncio
import json
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.worker.fleet import Fleet, kill, until

#: So many jobs at least, and so many deaths.
JOBS = 500
DEATHS = 5


@pytest.fixture
def crashing(fleet: Fleet) -> Fleet:
    shutil.copy(Path(__file__).with_name("crash_app.py"), fleet.folder / "crash_app.py")
    fleet.app = "crash_app:app"
    return fleet


async def pay_while_children_die(fleet: Fleet, kinds: tuple[str, str]) -> tuple[int, Counter[str]]:
    """The number of jobs, and how often each has paid; every job has succeeded."""
    chance = random.Random(5)
    await fleet.started("--processes", "2", "--concurrency", "10", "--threads", "6", children=2)
    killed = enqueued = 0
    while enqueued < JOBS or killed < DEATHS:
        async with fleet.connection.transaction():  # all at once, so that the workers have much to do
            for number in range(enqueued, enqueued + JOBS // 10):
                await fleet.enqueue(kinds[number % 2], {"number": number}, max_attempts=100)
        enqueued += JOBS // 10
        while int(await fleet.scalar("select count(*) from fenceline.history where final")) < enqueued:
            # Not one that runs a suspect alone: three deaths of that are a quarantine, which is another story.
            busy = await fleet.connection.fetch(
                "select w.pid from fenceline.running r join fenceline.worker w on w.id = r.worker_id "
                "where r.deaths is null group by w.pid having count(*) > 3 order by w.pid"
            )
            await asyncio.sleep(chance.uniform(0.0, 0.1))
            if busy:
                kill(chance.choice([row["pid"] for row in busy]))
                killed += 1
                break
    await fleet.ended(enqueued)
    outcomes = Counter(row["outcome"] for row in await fleet.history() if row["final"])
    assert outcomes == {"succeeded": enqueued}
    return enqueued, Counter(row["job"] for row in await fleet.connection.fetch("select job from public.paid"))


@pytest.mark.parametrize("kinds", [("pay", "pay_blocking"), ("pay_together", "pay_together_blocking")])
async def test_effects_are_exactly_once_although_children_die(crashing: Fleet, kinds: tuple[str, str]) -> None:
    jobs, paid = await pay_while_children_die(crashing, kinds)
    assert paid.total() == len(paid) == jobs


async def test_without_the_transaction_they_are_not(crashing: Fleet) -> None:
    """A death between the payment and the end of the job: what the transaction above rules out."""
    worker = await crashing.started()
    await crashing.enqueue("pay_apart", {"number": 0})
    await crashing.enqueue("pay_apart_blocking", {"number": 1})

    async def paid() -> Counter[str]:
        return Counter(row["job"] for row in await crashing.connection.fetch("select job from public.paid"))

    async def both_paid() -> bool:
        return (await paid()).total() == 2

    await until(both_paid, "both have paid")
    [child] = worker.children()
    kill(child)
    (crashing.folder / "gate").touch()
    await crashing.ended(2)
    assert await paid() == {"0": 2, "1": 2}


def notes(fleet: Fleet) -> list[str]:
    file = fleet.folder / "notes"
    return file.read_text().splitlines() if file.exists() else []


async def steps(fleet: Fleet, job_id: int) -> dict[str, str]:
    rows = await fleet.connection.fetch("select name, status from fenceline.list_steps($1)", job_id)
    return {row["name"]: row["status"] for row in rows}


async def at_the_gate(fleet: Fleet, times: int = 1) -> None:
    async def there() -> bool:
        return notes(fleet).count("at gate") >= times

    await until(there, "the second step runs")


@pytest.mark.parametrize("flavour", ["async", "def"])
async def test_steps_that_were_done_before_a_death_are_not_run_again(crashing: Fleet, flavour: str) -> None:
    worker = await crashing.started()
    [job_id] = await crashing.enqueue(f"walk.{flavour}.release", {"gate": "gate"})
    await at_the_gate(crashing)
    [child] = worker.children()
    kill(child)
    await at_the_gate(crashing, 2)
    (crashing.folder / "gate").touch()
    await crashing.ended(1)
    assert notes(crashing) == ["one", "at gate", "at gate", "three"]
    assert [row["outcome"] for row in await crashing.history(job_id)] == ["crashed", "succeeded"]
    assert json.loads((await crashing.history(job_id))[-1]["result"]) == ["one", "gate", "three"]


@pytest.mark.parametrize("flavour", ["async", "def", "isolated"])
async def test_a_shutdown_is_heeded_between_steps(crashing: Fleet, flavour: str) -> None:
    worker = await crashing.started("--grace", "3600", "--isolated", "2")
    [released] = await crashing.enqueue(f"walk.{flavour}.release", {"gate": "gate"})
    [failed] = await crashing.enqueue(f"walk.{flavour}.fail", {"gate": "gate"})
    await at_the_gate(crashing, 2)
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0  # not after the grace period, but after the step
    [row] = await crashing.history(released)
    assert (row["outcome"], row["final"]) == ("released", False)
    [row] = await crashing.history(failed)
    assert (row["outcome"], row["final"], json.loads(row["error"])["code"]) == ("failed", True, "shutdown")
    assert await steps(crashing, released) == await steps(crashing, failed) == {"one": "done", "two": "done"}

    await crashing.started()
    await crashing.ended(2)
    assert [row["outcome"] for row in await crashing.history(released)] == ["released", "succeeded"]
    assert Counter(notes(crashing)) == {"one": 2, "at gate": 2, "three": 1}


async def test_every_signal_is_taken_once_although_children_die(crashing: Fleet) -> None:
    """And no step is run again once it is recorded."""
    jobs, connection = 1000, crashing.connection
    await crashing.started("--processes", "2", "--concurrency", "10", children=2)
    for _ in range(jobs):
        await crashing.enqueue("relay", {}, max_attempts=100)
    await connection.execute("select fenceline.signal_job(id, 'word', '1') from fenceline.job")
    killed, sent = 0, False

    async def busy() -> list[int]:
        rows = await connection.fetch(
            "select w.pid from fenceline.running r join fenceline.worker w on w.id = r.worker_id "
            "where r.deaths is null group by w.pid having count(*) > 3"
        )
        return [row["pid"] for row in rows]

    async def ended() -> bool:
        nonlocal killed, sent
        ready = int(await crashing.scalar("select count(*) from fenceline.held where waiting_for = 'signal'"))
        if ready > jobs // 4 and not sent:  # in the middle: some wait, some run, some are killed just now
            await connection.execute("select fenceline.signal_job(id, 'word', '2') from fenceline.job")
            sent = True
        for pid in (await busy())[:1] if killed < 8 else []:
            kill(pid)
            killed += 1
        return int(await crashing.scalar("select count(*) from fenceline.history where final")) == jobs

    await until(ended, "all have heard both words")
    assert killed >= 3, "the jobs have met some deaths"
    rows = await connection.fetch("select outcome, result::text from fenceline.history where final")
    assert Counter((row["outcome"], row["result"]) for row in rows) == {("succeeded", "[1, 2]"): jobs}
    assert await crashing.scalar("select count(*) from fenceline.signal where taken_at is not null") == 2 * jobs
    recorded = {
        (row["name"], row["job_id"]): row["token"]
        for row in await connection.fetch("select name, job_id, token from fenceline.step where name like 'step%'")
    }
    runs = [line.split() for line in notes(crashing)]
    assert len(recorded) == 2 * jobs <= len(runs)
    assert [run for run in runs if int(run[2]) > recorded[run[0], int(run[1])]] == []
