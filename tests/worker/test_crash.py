"""Workers that die, freeze or block: no job is lost, none ends twice, and none waits longer than it must."""

import asyncio
import os
import signal
import time
from pathlib import Path

from tests.worker.fleet import Fleet, is_alive, kill, until

LONG_LEASE = 60.0


async def kill_a_child_in_the_middle(fleet: Fleet, *, seconds: float = 60.0) -> float:
    """100 jobs, a child killed while it runs some: how long it took until the last of its jobs was claimed again."""
    worker = await fleet.started("--lease", str(LONG_LEASE), "--processes", "2", "--concurrency", "4", children=2)
    await fleet.enqueue("nap", {"seconds": 0.05}, count=100)
    await fleet.handlers(20)
    victim = worker.children()[0]
    killed_at = await fleet.scalar("select clock_timestamp()")
    os.kill(victim, signal.SIGKILL)
    await fleet.ended(100, seconds=seconds)
    await fleet.each_has_one_final_row(100)
    lost = await fleet.connection.fetch(
        "select h.job_id, (select min(n.claimed_at) from fenceline.history n"
        "                  where n.job_id = h.job_id and n.token > h.token) as again "
        "from fenceline.history h where h.outcome in ('crashed', 'released')"
    )
    assert lost, "the child held jobs when it was killed"
    assert all(row["again"] is not None for row in lost)
    return max(float((row["again"] - killed_at).total_seconds()) for row in lost)


async def test_jobs_of_a_killed_child_are_claimed_again_at_once(fleet: Fleet) -> None:
    took = await kill_a_child_in_the_middle(fleet)
    print(f"claimed again after {took:.2f} s")  # noqa: T201
    assert took < 2.0
