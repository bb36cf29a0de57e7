"""Lanes while workers run: limits follow the database, and no lane waits for another."""

import asyncio
import statistics
import time
from collections import Counter

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


async def start_latencies(fleet: Fleet, lane: str, *, count: int) -> list[float]:
    """From enqueue to the handler's first line, one job at a time."""
    latencies = []
    for _ in range(count):
        asked = time.monotonic()
        [job_id] = await fleet.enqueue("nap", lane=lane)

        async def started(job_id: int = job_id) -> float:
            return next((line.at for line in fleet.ledger() if line.job_id == job_id), 0.0)

        latencies.append(await until(started, "the job starts") - asked)
        await asyncio.sleep(0.02)
    return latencies


async def test_a_saturated_lane_does_not_delay_another(fleet: Fleet) -> None:
    """Far more slow jobs than places, of both sorts: whoever waited for one of them would wait for 5 s and more."""
    await fleet.set_lane("slow")
    await fleet.set_lane("quick")
    await fleet.started("--concurrency", "8", "--threads", "3")
    await fleet.waiting("quick")
    unloaded = await start_latencies(fleet, "quick", count=20)

    await fleet.enqueue("nap", {"seconds": 5}, count=200, lane="slow")
    await fleet.enqueue("blocking_nap", {"seconds": 5}, count=50, lane="slow")

    async def saturated() -> bool:
        # One place is kept for each of the lanes `default` and `quick`, but less than half of all.
        return await in_use(fleet, "slow") >= (8 - 2) + (3 - 1)

    await until(saturated, "the slow lane uses all it may")
    loaded = await start_latencies(fleet, "quick", count=40)
    # Medians, because the machine is shared; and the slowest may have met noise but not a slow job.
    assert statistics.median(loaded) < 2 * statistics.median(unloaded) + 0.05
    assert max(loaded) < 2.5
    assert statistics.quantiles(loaded, n=20)[-1] < 2 * max(unloaded) + 0.2


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
