"""Workers that die, freeze or block: no job is lost, none ends twice, and none waits longer than it must.

The scenarios are functions, so that `test_red.py` can run them with a rule taken out and see them fail.
"""

import asyncio
import os
import signal
import time
from datetime import datetime
from typing import Any

import pytest
from tests.conftest import Connect
from tests.support.figures import Figures
from tests.worker.fleet import Fleet, WorkerProcess, is_alive, until

from fenceline.model.worker_settings import BEATS_PER_LEASE

#: So long that it never ends within a test: whatever happens is not because of it.
LONG_LEASE = 3600.0


async def replaced(fleet: Fleet, worker: WorkerProcess, before: list[int]) -> None:
    """Until a child has started that was not there before."""

    async def has_another() -> bool:
        return bool(set(await fleet.registered(worker)) - set(before))

    await until(has_another, "another child takes its place", worker.output)


async def kill_a_child(fleet: Fleet) -> datetime:
    """100 jobs, a child killed while it runs some: what it held is given back; when it was killed."""
    worker = await fleet.started("--lease", str(LONG_LEASE), "--processes", "2", "--concurrency", "4", children=2)
    gate = fleet.folder / "gate"
    await fleet.enqueue("until_released", {"gate": str(gate)}, count=100)
    await fleet.handlers(8)

    async def frozen() -> int | None:
        """A child that holds jobs, and keeps them."""
        for pid in worker.children():
            os.kill(pid, signal.SIGSTOP)
            if await fleet.scalar(
                "select count(*) from fenceline.running where worker_id in "
                "(select id from fenceline.worker where pid = $1)",
                pid,
            ):
                return pid
            os.kill(pid, signal.SIGCONT)
        return None

    victim = await until(frozen, "a child holds jobs")
    children = worker.children()
    killed_at: datetime = await fleet.scalar("select clock_timestamp()")
    os.kill(victim, signal.SIGKILL)
    gate.touch()
    # Only once the death is reported is the child replaced.
    await replaced(fleet, worker, children)
    held = "select count(*) from fenceline.running where worker_id in (select id from fenceline.worker where pid = $1)"
    assert await fleet.scalar(held, victim) == 0, "what the killed child held was given back"
    await fleet.ended(100)
    await fleet.each_has_one_final_row(100)
    lost = "select count(*) from fenceline.history where outcome in ('crashed', 'released')"
    assert await fleet.scalar(lost) > 0, "the child held jobs when it was killed"
    return killed_at


async def kill_the_supervisor(fleet: Fleet) -> float:
    """Its children end with it, also one whose event loop cannot notice anything. How long they outlived it."""
    gate = fleet.folder / "gate"
    worker = await fleet.started("--lease", str(LONG_LEASE), "--processes", "2", children=2)
    await fleet.enqueue("nap", {"seconds": 3600}, count=4)
    await fleet.handlers(4)
    await fleet.enqueue("block_the_loop_until_released", {"gate": str(gate)})
    await fleet.handlers(5)
    children = worker.children()
    killed_at = time.monotonic()
    os.kill(worker.pid, signal.SIGKILL)
    worker.process.wait()
    gate.touch()  # a child that lived on would say so

    async def told_or_gone() -> bool:
        return len(fleet.ledger()) > 5 or not any(is_alive(pid) for pid in children)

    await until(told_or_gone, "the children are gone", fleet.ledger)
    took = time.monotonic() - killed_at
    assert {line.word for line in fleet.ledger()} == {"start"}, "the children ended with their supervisor"
    return took


#: A child that does not heed the loss of its lease: only the fence is left.
HEEDLESS = """
from fenceline.engine.engine import Engine
from fenceline.engine.executor import Executor
Engine.lose = lambda self: None
Executor.abandon = lambda self, attempt_id: None
from fenceline.worker.child_process import ChildProcess
async def not_before_it_has_written(self, process): pass
ChildProcess._end_when_lost = not_before_it_has_written
"""


async def freeze_a_child(fleet: Fleet) -> None:
    """SIGSTOP past the lease: another worker's result stands, and what the sleeper writes is refused."""
    frozen = await fleet.started("--lease", str(LONG_LEASE))
    gate = fleet.folder / "gate"
    [job_id] = await fleet.enqueue("until_own_gate", {"gate": str(gate)})
    [first] = await fleet.handlers(1)
    os.kill(first.pid, signal.SIGSTOP)
    (fleet.folder / f"gate{first.token}").touch()
    other = await fleet.started("--lease", str(LONG_LEASE))
    await fleet.end_lease(first.pid)  # which is not renewed while it is stopped
    # It wakes up with its work done while another process is in the middle of it.
    [_first, second] = await fleet.handlers(2)
    os.kill(first.pid, signal.SIGCONT)

    async def has_written() -> bool:
        ended = int(await fleet.scalar("select count(*) from fenceline.history where final"))
        return bool(ended) or "stale_attempt" in frozen.output()

    await until(has_written, "the frozen child writes", frozen.output)
    (fleet.folder / f"gate{second.token}").touch()
    await fleet.ended(1)
    await fleet.each_has_one_final_row(1)
    history = await fleet.history(job_id)
    assert [row["outcome"] for row in history] == ["lost", "succeeded"]
    assert history[1]["result"] != str(first.pid)
    assert "stale_attempt" in frozen.output(), "the write of the frozen child is refused"
    assert "stale_attempt" not in other.output()


async def block_past_the_lease(fleet: Fleet, kind: str, *, lease: float = 8.0) -> None:
    """A handler that keeps its process from everything else for longer than the lease."""
    await fleet.started("--lease", str(lease))
    gate = fleet.folder / "gate"
    if kind == "block_the_loop_until_released":
        [job_id] = await fleet.enqueue(kind, {"gate": str(gate)})
    else:
        os.mkfifo(gate)
        [job_id] = await fleet.enqueue(kind, {"pipe": str(gate)})
    [started] = await fleet.handlers(1)
    await fleet.started("--lease", str(LONG_LEASE))  # which would take the job over
    await fleet.renewed(started.pid, BEATS_PER_LEASE + 1)
    if gate.exists():
        os.close(os.open(gate, os.O_WRONLY))
    else:
        gate.touch()
    await fleet.ended(1)
    history = await fleet.history(job_id)
    assert [(row["outcome"], row["number"], row["final"]) for row in history] == [("succeeded", 1, True)]
    assert [line.word for line in fleet.ledger()] == ["start", "end"]


async def report_beside_a_held_row(fleet: Fleet, connect: Connect, *, lease: float = 8.0) -> None:
    """A child dies while somebody holds its row: its report waits, and the other child keeps its lease and its job."""
    worker = await fleet.started("--lease", str(lease), "--processes", "2", children=2)
    victim, sibling = worker.children()
    operator = await connect()
    transaction = operator.transaction()
    await transaction.start()
    await operator.execute("select 1 from fenceline.worker where pid = $1 for key share", victim)
    os.kill(victim, signal.SIGKILL)

    async def is_reported() -> bool:
        """The report waits for the row."""
        return bool(
            await fleet.scalar(
                "select exists (select 1 from pg_stat_activity where datname = current_database() "
                "and wait_event_type = 'Lock' and query like '%report_death%')"
            )
        )

    await until(is_reported, "the death is reported")
    await fleet.renewed(sibling, 2)
    assert sibling in await fleet.live_pids(), worker.output()
    assert "has lost its lease" not in worker.output()
    await transaction.rollback()

    async def is_signed_off() -> bool:
        return victim not in await fleet.live_pids()

    await until(is_signed_off, "the dead child is signed off")


async def test_a_report_that_waits_costs_no_sibling_its_lease(fleet: Fleet, connect: Connect) -> None:
    await report_beside_a_held_row(fleet, connect)


async def test_jobs_of_a_killed_child_are_given_back_at_once(fleet: Fleet) -> None:
    """Long before their lease ends."""
    await kill_a_child(fleet)


@pytest.mark.timing
async def test_how_soon_the_jobs_of_a_killed_child_are_given_back(fleet: Fleet, figures: Figures) -> None:
    killed_at = await kill_a_child(fleet)
    lost = await fleet.connection.fetch(
        "select ended_at, (select min(n.claimed_at) from fenceline.history n"
        "                  where n.job_id = h.job_id and n.token > h.token) as again "
        "from fenceline.history h where h.outcome in ('crashed', 'released')"
    )
    figures.at_most("given back after", max((row["ended_at"] - killed_at).total_seconds() for row in lost), 2.0)
    # Suspects wait for a process of their own, which has to be started.
    figures.at_most("claimed again after", max((row["again"] - row["ended_at"]).total_seconds() for row in lost), 20.0)


async def test_children_do_not_outlive_their_supervisor(fleet: Fleet) -> None:
    await kill_the_supervisor(fleet)


@pytest.mark.timing
async def test_how_long_children_outlive_their_supervisor(fleet: Fleet, figures: Figures) -> None:
    figures.at_most("the children are gone after", await kill_the_supervisor(fleet), 3.0)


async def test_jobs_of_a_killed_supervisor_are_taken_over_when_the_lease_ends(fleet: Fleet) -> None:
    worker = await fleet.started("--lease", str(LONG_LEASE))
    gate = fleet.folder / "gate"
    [job_id] = await fleet.enqueue("until_released", {"gate": str(gate)})
    [first] = await fleet.handlers(1)
    os.kill(worker.pid, signal.SIGKILL)
    await fleet.started("--lease", str(LONG_LEASE))
    await fleet.enqueue("nap")
    await fleet.ended(1)
    assert await fleet.history(job_id) == [], "not before"
    gate.touch()
    await fleet.end_lease(first.pid)
    await fleet.ended(2)
    assert [row["outcome"] for row in await fleet.history(job_id)] == ["lost", "succeeded"]


async def test_a_frozen_child_is_overtaken(fleet: Fleet) -> None:
    await freeze_a_child(fleet)


async def test_writes_of_a_frozen_child_are_refused(fleet: Fleet) -> None:
    fleet.patch(HEEDLESS)
    await freeze_a_child(fleet)
    assert "was refused" in fleet.workers[0].output()


async def test_a_frozen_child_is_replaced(fleet: Fleet) -> None:
    worker = await fleet.started("--lease", "5")
    [sleeper] = worker.children()
    os.kill(sleeper, signal.SIGSTOP)
    await replaced(fleet, worker, [sleeper])
    await fleet.enqueue("nap")
    await fleet.ended(1)
    # Awake again it finds out and ends by itself; the supervisor sees to it otherwise.
    os.kill(sleeper, signal.SIGCONT)

    async def gone() -> bool:
        return not is_alive(sleeper)

    await until(gone, "the frozen child ends")
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code() == 0


async def freeze_the_supervisor(fleet: Fleet, *, lease: float) -> float:
    """How long until the child has stopped its handlers."""
    worker = await fleet.started("--lease", str(lease))
    await fleet.enqueue("until_released", {"gate": "never"})
    await fleet.handlers(1)
    os.kill(worker.pid, signal.SIGSTOP)

    async def says_so() -> bool:
        return "handlers are stopped" in worker.output()

    started = time.monotonic()
    try:
        await until(says_so, "the child stops its handlers", worker.output)
        return time.monotonic() - started
    finally:
        os.kill(worker.pid, signal.SIGCONT)


async def test_children_of_a_frozen_supervisor_stop(fleet: Fleet) -> None:
    await freeze_the_supervisor(fleet, lease=3.0)


@pytest.mark.timing
async def test_children_of_a_frozen_supervisor_stop_before_the_lease_ends(fleet: Fleet, figures: Figures) -> None:
    figures.at_most("handlers are stopped after", await freeze_the_supervisor(fleet, lease=3.0), 3.0)


@pytest.mark.parametrize("kind", ["block_the_loop_until_released", "hold_the_gil_until_released"])
async def test_a_blocked_process_is_not_taken_for_dead(fleet: Fleet, kind: str) -> None:
    await block_past_the_lease(fleet, kind)


@pytest.mark.parametrize("how", ["kill", "abort"])
async def test_a_job_that_kills_its_process_is_quarantined(fleet: Fleet, how: str) -> None:
    await fleet.started("--lease", str(LONG_LEASE), "--processes", "2", "--concurrency", "6", children=2)
    neighbours = await fleet.enqueue("nap", {"seconds": 0.3}, count=20)
    [poison] = await fleet.enqueue("kill_the_process", {"how": how}, priority=1)
    later = await fleet.enqueue("nap", {"seconds": 0.1}, count=20)
    await fleet.ended(41)
    await fleet.each_has_one_final_row(41)

    history = await fleet.history(poison)
    assert history[-1]["outcome"] == "failed"
    assert history[-1]["error"] is not None
    assert '"quarantined"' in history[-1]["error"]
    assert len(history) in (3, 4), "3 solo deaths, and at most one in company before"
    for job_id in (*neighbours, *later):
        attempts = await fleet.history(job_id)
        assert attempts[-1]["outcome"] == "succeeded"
        assert attempts[-1]["number"] == 1, "whoever shared the process is not blamed"
        assert {row["outcome"] for row in attempts[:-1]} <= {"crashed", "released"}


async def test_what_a_child_leaves_behind_does_not_hold_up_its_end(fleet: Fleet) -> None:
    """A process that the child has started holds descriptors of it: the supervisor goes by the child alone."""
    over = fleet.folder / "over"
    (fleet.folder / "forking_app.py").write_text(
        "import os, signal, time\n"
        "from sample_app import app\n"
        "@app.job()\n"
        "async def fork_and_die() -> None:\n"
        "    if os.fork() == 0:\n"
        f"        while not os.path.exists({str(over)!r}) and os.path.exists({str(fleet.folder)!r}):\n"
        "            time.sleep(0.05)\n"
        "        os._exit(0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    await fleet.started("--lease", str(LONG_LEASE), app="forking_app:app")
    try:
        [poison] = await fleet.enqueue("fork_and_die")
        await fleet.enqueue("nap")
        await fleet.ended(2)
    finally:
        over.touch()
    assert len(await fleet.history(poison)) == 3


#: A second lane, and handlers that hold their places.
TWO_LANES_APP = """
import asyncio, os
from sample_app import app, note

@app.job(lane="other")
async def quick(*, ctx):
    note("quick", ctx)

@app.job()
async def die_once(gate: str, *, ctx):
    note("start", ctx)
    if not os.path.exists(gate):
        open(gate, "w").close()
        os._exit(7)
    note("end", ctx)
    return os.getpid()
"""


async def crash_beside_long_jobs(fleet: Fleet, *, in_vain: float | None = None, patch: str = "") -> None:
    """A crash beside four long jobs: they run in processes of their own next, and nobody else waits for them."""
    (fleet.folder / "two_lanes_app.py").write_text(TWO_LANES_APP + patch)
    worker = await fleet.started("--lease", str(LONG_LEASE), "--isolated", "2", app="two_lanes_app:app")
    long = await fleet.enqueue("until_released", {"gate": str(fleet.folder / "gate")}, count=4)
    await fleet.handlers(4)
    [poison] = await fleet.enqueue("die_once", {"gate": str(fleet.folder / "died")})

    # As many as there are places run in processes that are no children of the supervisor's.
    async def apart() -> list[Any]:
        child = set(await fleet.registered(worker))
        lines = [line for line in fleet.ledger() if line.word == "start" and line.job_id in {*long, poison}][5:]
        return lines if len(lines) >= 2 and not child & {line.pid for line in lines} else []

    try:
        async with asyncio.timeout(in_vain):
            await until(apart, "suspects run in processes of their own", fleet.ledger)
    except TimeoutError as error:
        raise AssertionError("no suspect runs in a process of its own") from error
    for _ in range(20):
        await fleet.enqueue("quick")
        await asyncio.sleep(0.02)
    await fleet.handlers(20, word="quick")
    assert await fleet.scalar("select count(*) from fenceline.ready where deaths is not null") > 0, "some still wait"
    (fleet.folder / "gate").touch()
    await fleet.ended(25)
    for job_id in (*long, poison):
        attempts = await fleet.history(job_id)
        assert [row["outcome"] for row in attempts] == ["crashed", "succeeded"]
        assert attempts[-1]["number"] == 1
        name = await fleet.scalar("select fenceline.public_id($1)", job_id)
        assert f"{name} (" in worker.output(), "suspects are named"


async def test_a_crash_beside_long_jobs_delays_no_other_lane(fleet: Fleet) -> None:
    await crash_beside_long_jobs(fleet)


async def test_suspects_of_a_kind_that_nobody_has_disturb_nobody(fleet: Fleet) -> None:
    [unknown] = await fleet.enqueue("gone")
    gone = await fleet.scalar("select fenceline.register_worker('w', p_kinds => array['gone'])")
    await fleet.scalar("select count(*) from fenceline.claim_jobs($1)", gone)
    await fleet.scalar("select fenceline.report_crash($1)", gone)
    assert await fleet.scalar("select deaths from fenceline.ready where job_id = $1", unknown) == 1
    await fleet.started("--lease", str(LONG_LEASE))
    await fleet.enqueue("until_released", {"gate": str(fleet.folder / "gate")})
    await fleet.handlers(1)
    told = (
        "select count(*) from fenceline.worker w, fenceline.worker_lanes(null, w.id) l "
        "where w.stopped_at is null and l.suspects"
    )
    assert await fleet.scalar(told) == 0
    await fleet.enqueue("nap", count=30)
    await fleet.ended(30)
    (fleet.folder / "gate").touch()
    await fleet.ended(31)
