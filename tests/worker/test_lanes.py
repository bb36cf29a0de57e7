"""Lanes while workers run: limits follow the database, and no lane waits for another."""

import asyncio
import statistics
import time
from collections import Counter

import pytest
from tests.worker.fleet import Fleet, until

#: The lane's poll interval in these tests, and room for a busy machine.
POLL_SECONDS = 1.0
SLACK_SECONDS = 2.0


async def in_use(fleet: Fleet, lane: str) -> int:
    return int(await fleet.scalar("select count(*) from fenceline.running where lane = $1", lane))


async def test_slots_follow_the_database_and_are_never_exceeded(fleet: Fleet) -> None:
    await fleet.set_lane("narrow", slots=1, poll_interval_ms=int(POLL_SECONDS * 1000))
    for _ in range(3):
        fleet.start("--processes", "2", "--concurrency", "4")
    for worker in fleet.workers:
        await fleet.registered(worker, 2)
    await fleet.enqueue("nap", {"seconds": 0.05}, count=2000, lane="narrow")

    samples: Counter[tuple[int, bool]] = Counter()
    limit = 1
    changed_at = 0.0

    async def sample(until_used: int, seconds: float) -> float:
        """Sample until so many slots are in use; how long it took. Above the limit never, and after it was lowered
        only what was running then.
        """
        started = time.monotonic()
        highest = 8 if limit == 1 and changed_at else limit
        while True:
            used = await in_use(fleet, "narrow")
            samples[used, used > limit] += 1
            assert used <= highest
            if limit == 1:
                highest = min(highest, max(used, 1))  # it only goes down
            if used == until_used:
                return time.monotonic() - started
            assert time.monotonic() - started < seconds, f"{used} of {limit} slots in use"

    await sample(1, 20)
    for _ in range(20):
        await sample(1, 5)

    await fleet.set_lane("narrow", slots=8)
    limit = 8
    took_up = await sample(8, POLL_SECONDS + SLACK_SECONDS)

    await fleet.set_lane("narrow", slots=1)
    limit, changed_at = 1, time.monotonic()
    took_down = await sample(1, POLL_SECONDS + SLACK_SECONDS)
    for _ in range(50):
        assert await in_use(fleet, "narrow") <= 1
    assert sum(samples.values()) > 20
    assert took_up < POLL_SECONDS + SLACK_SECONDS
    assert took_down < POLL_SECONDS + SLACK_SECONDS
    assert set((await fleet.connection.fetchrow("select count(*) from fenceline.history where not final")) or ()) == {0}


async def start_latency(fleet: Fleet, lane: str) -> float:
    """From enqueue to the handler's first line."""
    asked = time.monotonic()
    [job_id] = await fleet.enqueue("nap", lane=lane)

    async def started() -> float:
        return next((line.at for line in reversed(fleet.ledger()) if line.job_id == job_id), 0.0)

    return float(await until(started, "the job starts")) - asked


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


@pytest.mark.alone
async def test_a_saturated_lane_does_not_delay_another(fleet: Fleet) -> None:
    """Far more slow jobs than places, of both sorts: whoever waited for one of them would wait for 60 s.

    Beside a worker without any load, sample by sample in turn: what else the machine does meets both.
    """
    for lane in ("slow", "quick", "unloaded"):
        await fleet.set_lane(lane)
    await fleet.started("--lanes", "slow,quick", "--concurrency", "8", "--threads", "3")
    await fleet.started("--lanes", "unloaded", "--concurrency", "8", "--threads", "3")
    await fleet.enqueue("nap", {"seconds": 60}, count=200, lane="slow")
    await fleet.enqueue("blocking_nap", {"seconds": 60}, count=50, lane="slow")

    async def saturated() -> bool:
        # One place of each sort is kept for the lane `quick`.
        return await in_use(fleet, "slow") >= (8 - 1) + (3 - 1)

    await until(saturated, "the slow lane uses all it may")
    await fleet.waiting("quick")
    await fleet.waiting("unloaded")
    quick: list[float] = []
    unloaded: list[float] = []
    for _ in range(300):
        quick.append(await start_latency(fleet, "quick"))
        unloaded.append(await start_latency(fleet, "unloaded"))
    assert await in_use(fleet, "slow") >= (8 - 1) + (3 - 1)
    assert percentile(quick, 99) <= 2 * percentile(unloaded, 99), (
        f"p50 {percentile(quick, 50):.4f} beside {percentile(unloaded, 50):.4f} s, "
        f"p99 {percentile(quick, 99):.4f} beside {percentile(unloaded, 99):.4f} s"
    )


async def test_a_drained_lane_is_claimed_from_no_more(fleet: Fleet) -> None:
    await fleet.set_lane("drained", poll_interval_ms=500)
    await fleet.started("--concurrency", "2")
    # Quick ones first, so that the worker fetches ahead; then one that keeps them waiting.
    await fleet.enqueue("nap", {}, count=200, lane="drained")
    await fleet.ended(200)
    gate = fleet.folder / "gate"
    await fleet.enqueue("until_released", {"gate": str(gate)}, count=40, lane="drained")
    await fleet.handlers(202)
    await fleet.set_lane("drained", enabled=False)

    async def only_what_runs() -> bool:
        return await in_use(fleet, "drained") == 2

    await until(only_what_runs, "what was fetched ahead is handed back")
    gate.touch()
    await fleet.ended(202)
    await asyncio.sleep(0.7)  # longer than its poll interval
    assert await fleet.scalar("select count(*) from fenceline.ready") == 38
    await fleet.set_lane("drained", enabled=True)
    await fleet.ended(240)
    await fleet.each_has_one_final_row(240)


async def test_a_worker_serves_the_lanes_it_is_told_to(fleet: Fleet) -> None:
    for lane in ("mine", "yours"):
        await fleet.set_lane(lane)
    await fleet.started("--lanes", "mine, default")
    yours = await fleet.enqueue("nap", lane="yours")
    mine = await fleet.enqueue("nap", lane="mine")
    mine += await fleet.enqueue("nap")
    await fleet.ended(2)
    assert {row["job_id"] for row in await fleet.history()} == set(mine)
    assert await fleet.scalar("select job_id from fenceline.ready") == yours[0]
    row = await fleet.connection.fetchrow("select * from fenceline.worker")
    assert row is not None
    assert row["lanes"] == ["mine", "default"]


async def test_a_due_job_starts_within_a_second(fleet: Fleet) -> None:
    await fleet.started()
    await fleet.waiting("default")
    rows = await fleet.connection.fetch(
        "select e.job_id, x.run_at from "
        "(select clock_timestamp() + make_interval(secs => 0.5 + i * 0.23) as run_at from generate_series(1, 10) i) x, "
        "lateral fenceline.enqueue('nap', '{}', json_build_object('run_at', x.run_at)) e"
    )
    await fleet.ended(10)
    lateness = []
    for row in rows:
        [attempt] = await fleet.history(row["job_id"])
        lateness.append((attempt["claimed_at"] - row["run_at"]).total_seconds())
    assert min(lateness) >= 0
    # At most once a second, and the busy machine.
    assert statistics.median(lateness) < 1.0
    assert max(lateness) < 2.0
