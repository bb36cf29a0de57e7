"""Lanes while workers run: limits follow the database, and no lane waits for another."""

import asyncio
import statistics
import time

import pytest
from tests.support.figures import Figures
from tests.support.patience import eventually
from tests.worker.fleet import Fleet, until

POLL_SECONDS = 1.0


async def in_use(fleet: Fleet, lane: str) -> int:
    return int(await fleet.scalar("select count(*) from fenceline.running where lane = $1", lane))


async def change_slots(fleet: Fleet) -> tuple[float, float]:
    """From one to eight slots and back, with sample after sample of how many are in use: how long each change took."""
    await fleet.set_lane("narrow", slots=1, poll_interval_ms=int(POLL_SECONDS * 1000))
    for _ in range(3):
        fleet.start("--processes", "2", "--concurrency", "4")
    for worker in fleet.workers:
        await fleet.registered(worker, 2)
    await fleet.enqueue("nap", {"seconds": 0.02}, count=10_000, lane="narrow")  # more than can run while the test does
    gate = fleet.folder / "gate"

    async def sample(wanted: int, most: int) -> float:
        """Until so many are in use. Never more than `most`, and above what is wanted it only goes down."""
        started, used = time.monotonic(), 0

        async def reached() -> bool:
            nonlocal most, used
            used = await in_use(fleet, "narrow")
            assert used <= most
            most = min(most, max(used, wanted))
            return used == wanted

        await eventually(reached, f"{wanted} slots are in use", lambda: used)
        return time.monotonic() - started

    for _ in range(20):
        await sample(1, most=1)

    # These come first and stay, so that all the slots are seen in use however slow the machine is.
    await fleet.enqueue("until_released", {"gate": str(gate)}, count=20, lane="narrow", priority=10)
    await fleet.set_lane("narrow", slots=8)
    took_up = await sample(8, most=8)

    async def all_held() -> bool:
        text = "select count(*) from fenceline.running r join fenceline.job j on j.id = r.job_id where j.kind = $1"
        return int(await fleet.scalar(text, "until_released")) == 8

    await until(all_held, "all that runs is held")
    await fleet.set_lane("narrow", slots=1)
    assert await in_use(fleet, "narrow") == 8, "what runs goes on"
    gate.touch()
    took_down = await sample(1, most=8)
    for _ in range(50):
        assert await in_use(fleet, "narrow") <= 1
    assert await fleet.scalar("select count(*) from fenceline.history where not final") == 0
    return took_up, took_down


async def test_slots_follow_the_database_and_are_never_exceeded(fleet: Fleet) -> None:
    await change_slots(fleet)


@pytest.mark.timing
async def test_how_soon_slots_follow_the_database(fleet: Fleet, figures: Figures) -> None:
    took_up, took_down = await change_slots(fleet)
    figures.at_most("from 1 to 8 slots", took_up, POLL_SECONDS + 2)
    figures.at_most("from 8 to 1 slots", took_down, POLL_SECONDS + 2)


async def start_latency(fleet: Fleet, lane: str) -> float:
    """From enqueue to the handler's first line."""
    asked = time.monotonic()
    [job_id] = await fleet.enqueue("nap", lane=lane)

    async def started() -> float:
        return next((line.at for line in reversed(fleet.ledger()) if line.job_id == job_id), 0.0)

    return float(await until(started, "the job starts")) - asked


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def measure_beside_saturated(fleet: Fleet, count: int) -> tuple[list[float], list[float]]:
    """How soon jobs start beside a saturated lane, and with a worker without any load.

    Far more slow jobs than places, of both sorts: whoever waited for one of them would wait for ever. Sample by sample
    in turn: what else the machine does meets both.
    """
    for lane in ("slow", "quick", "unloaded"):
        await fleet.set_lane(lane)
    await fleet.started("--lanes", "slow,quick", "--concurrency", "8", "--threads", "3")
    await fleet.started("--lanes", "unloaded", "--concurrency", "8", "--threads", "3")
    await fleet.enqueue("nap", {"seconds": 3600}, count=200, lane="slow")
    await fleet.enqueue("blocking_nap", {"seconds": 3600}, count=50, lane="slow")

    async def saturated() -> bool:
        # One place of each sort is kept for the lane `quick`.
        return await in_use(fleet, "slow") >= (8 - 1) + (3 - 1)

    await until(saturated, "the slow lane uses all it may")
    await fleet.waiting("quick")
    await fleet.waiting("unloaded")
    quick: list[float] = []
    unloaded: list[float] = []
    for _ in range(count):
        quick.append(await start_latency(fleet, "quick"))
        unloaded.append(await start_latency(fleet, "unloaded"))
    assert await saturated()
    return quick, unloaded


async def test_a_saturated_lane_does_not_delay_another(fleet: Fleet) -> None:
    await measure_beside_saturated(fleet, 20)


@pytest.mark.timing
async def test_how_soon_jobs_start_beside_a_saturated_lane(fleet: Fleet, figures: Figures) -> None:
    quick, unloaded = await measure_beside_saturated(fleet, 300)
    figures.at_most("p99 of starts beside a saturated lane", percentile(quick, 99), 2 * percentile(unloaded, 99))


async def test_a_drained_lane_is_claimed_from_no_more(fleet: Fleet) -> None:
    fleet.patch("from fenceline.engine import claim_policy\nclaim_policy.QUICK_SECONDS = 60.0")  # on any machine
    await fleet.set_lane("drained", poll_interval_ms=500)
    await fleet.started("--concurrency", "2")
    # Quick ones first, so that the worker fetches ahead; then one that keeps them waiting.
    await fleet.enqueue("nap", {}, count=200, lane="drained")
    await fleet.ended(200)
    gate = fleet.folder / "gate"
    await fleet.enqueue("until_released", {"gate": str(gate)}, count=40, lane="drained")
    await fleet.handlers(202)
    await fleet.set_lane("drained", enabled=False)

    drained_at = await fleet.scalar("select clock_timestamp()")

    async def only_what_runs() -> bool:
        # A claim that was under way may still see the lane as it was.
        under_way = (
            "select exists (select 1 from pg_stat_activity where datname = current_database() and xact_start < $1)"
        )
        return not await fleet.scalar(under_way, drained_at) and await in_use(fleet, "drained") == 2

    await until(only_what_runs, "what was fetched ahead is handed back")
    gate.touch()
    await fleet.ended(202)
    for others in range(1, 4):  # the worker goes on with what comes later elsewhere
        await fleet.enqueue("nap")
        await fleet.ended(202 + others)
    await asyncio.sleep(0.7)  # and looks again: whoever polls a drained lane would claim from it now
    assert await fleet.scalar("select count(*) from fenceline.ready where lane = 'drained'") == 38
    await fleet.set_lane("drained", enabled=True)
    await fleet.ended(243)
    await fleet.each_has_one_final_row(243)


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


async def lateness_of_due_jobs(fleet: Fleet) -> list[float]:
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
    return lateness


async def test_a_due_job_starts_and_never_before_its_time(fleet: Fleet) -> None:
    assert min(await lateness_of_due_jobs(fleet)) >= 0


@pytest.mark.timing
async def test_a_due_job_starts_within_a_second(fleet: Fleet, figures: Figures) -> None:
    lateness = await lateness_of_due_jobs(fleet)
    # At most once a second, and the busy machine.
    figures.at_most("a due job starts after, median", statistics.median(lateness), 1.0)
    figures.at_most("a due job starts after, at worst", max(lateness), 2.0)
