"""The database's clock is set back or forward, by a failover or an administrator: durations go on, moments stay."""

from typing import Any

import pytest
from tests.sql.queue import Queue

BACK = (-30, -3600)
FORWARD = (30, 3600)
STEPS = pytest.mark.parametrize("step", [*BACK, *FORWARD])


async def keep_looking(queue: Queue) -> None:
    """As a worker's maintenance does, in a session of its own: so it knows that time does not fly."""
    for _ in range(3):
        await queue.call("maintain", 0.5)
        await queue.move_clock(0.5)
    assert await queue.call("maintain", 0.5) is not None


@STEPS
async def test_maintenance_goes_on_within_a_second(queue: Queue, step: int) -> None:
    await keep_looking(queue)
    await queue.call("upkeep", 60)
    await queue.call("count_tenants", 1)
    await queue.step_clock(step)
    await queue.move_clock(1)
    assert await queue.call("maintain", 0.5) is not None
    assert await queue.call("maintain", 0.5) is None
    await queue.move_clock(0.5)
    assert await queue.call("maintain", 0.5) is not None
    if step < 0:
        assert await queue.call("upkeep", 60) is not None


@STEPS
async def test_the_fleet_lives_on(queue: Queue, step: int) -> None:
    """Leases count time that has passed: nobody is lost by the step, and who is gone is found as soon as without it."""
    live, gone = [await queue.register(lease_seconds=10) for _ in range(2)]
    jobs = [await queue.enqueue() for _ in range(3)]
    await queue.claim_one(worker=live)
    await queue.claim_one(worker=gone)
    await keep_looking(queue)
    await queue.step_clock(step)
    assert await queue.claimed_ids(1, worker=live) == [jobs[2]], "it need not register again"
    assert (await queue.maintain())["swept"] == 0
    for _ in range(12):
        await queue.rows("heartbeat", [live])
        await queue.move_clock(1)
        await queue.maintain()
    assert await queue.statuses(jobs) == ["claimed", "queued", "claimed"]


@STEPS
async def test_grace_and_signs_of_life_count_time_that_has_passed(queue: Queue, step: int) -> None:
    await queue.set_lane("watched", stale_timeout_seconds=20)
    silent = await queue.enqueue(lane="watched")
    stopping = await queue.enqueue()
    await queue.claim_one("watched")
    await queue.claim_one()
    await queue.call("cancel_job", stopping, grace_seconds=20)
    await keep_looking(queue)
    await queue.step_clock(step)
    await queue.maintain()
    assert await queue.statuses([silent, stopping]) == ["claimed", "claimed"]
    await queue.move_clock(16)
    await queue.maintain()
    assert await queue.statuses([silent, stopping]) == ["claimed", "claimed"]
    await queue.move_clock(4)
    await queue.maintain()
    assert await queue.statuses([silent, stopping]) == ["queued", "cancelled"]


@STEPS
async def test_a_lost_message_is_missed_as_soon_as_without_the_step(queue: Queue, step: int) -> None:
    await queue.set_lane("default", delivery="arq")
    await queue.enqueue()
    await keep_looking(queue)
    assert len(await queue.rows("take_messages", "arq")) == 1
    await queue.step_clock(step)
    assert (await queue.maintain())["resent"] == 0
    await queue.move_clock(3)
    assert (await queue.maintain())["resent"] == 1


@STEPS
async def test_a_refused_job_fails_as_soon_as_without_the_step(queue: Queue, step: int) -> None:
    """The worker that refused it is the only one left."""
    await queue.call("stop_worker", queue.worker)
    await queue.call(
        "declare_signatures", await queue.register(lease_seconds=3600), {"work 0a": {"takes": {}, "extra": False}}
    )
    job = await queue.enqueue()
    await keep_looking(queue)
    await queue.sql("insert into fenceline.refusal values ($1, '{work 0a}', fenceline.clock())", job)
    await queue.step_clock(step)
    await queue.maintain()
    await queue.move_clock(55)
    await queue.maintain()
    assert await queue.status(job) == "queued"
    await queue.move_clock(10)
    await queue.maintain()
    assert await queue.status(job) == "failed"


@STEPS
@pytest.mark.parametrize("signal", ["go", None])
async def test_a_wait_is_as_long_as_it_was(queue: Queue, step: int, signal: str | None) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    me = (job, attempt.attempt_id)
    assert (await queue.call("begin_wait", *me, "w", signal, 20.0))["ended"] is None
    await queue.finish(attempt, "waiting")
    await keep_looking(queue)
    await queue.step_clock(step)
    await queue.maintain()
    await queue.move_clock(16)
    await queue.maintain()
    assert await queue.status(job) in ("waiting:signal", "scheduled")
    await queue.move_clock(4)
    await queue.maintain()
    assert await queue.status(job) == "queued"
    attempt = await queue.claim_one()
    ended = (await queue.call("begin_wait", job, attempt.attempt_id, "w", signal, 20.0))["ended"]
    assert ended == ("slept" if signal is None else "timeout")


@STEPS
async def test_a_backoff_is_as_long_as_it_was_and_run_at_is_a_moment(queue: Queue, step: int) -> None:
    planned = await queue.enqueue(run_at=await queue.at(7200), priority=9)
    again = await queue.enqueue()
    await queue.run(again, "failed", delay=20)
    await keep_looking(queue)
    await queue.step_clock(step)
    await queue.maintain()
    await queue.move_clock(16)
    await queue.maintain()
    assert await queue.status(again) == "scheduled"
    await queue.move_clock(4)
    await queue.maintain()
    assert await queue.statuses([again, planned]) == ["queued", "scheduled"]
    await queue.move_clock(7200 - 22 - step - 1)
    await queue.maintain()
    assert await queue.status(planned) == "scheduled"
    await queue.move_clock(2)
    await queue.maintain()
    assert await queue.status(planned) == "queued"


@STEPS
@pytest.mark.parametrize("looks", [True, False])
async def test_a_rated_lane_keeps_its_rate(queue: Queue, step: int, looks: bool) -> None:  # noqa: FBT001 - drawn by name
    """Neither does it stand still, nor does the step fill its bucket."""
    await queue.set_lane("paced", rate_per_second=2, burst=10)
    for _ in range(60):
        await queue.enqueue(lane="paced")
    assert len(await queue.claim(99, "paced")) == 10
    await keep_looking(queue)
    assert len(await queue.claim(99, "paced")) == 3
    await queue.step_clock(step)
    if looks:
        await queue.maintain()
    claimed = len(await queue.claim(99, "paced"))
    for _ in range(5):
        await queue.move_clock(1)
        claimed += len(await queue.claim(99, "paced"))
    assert 8 <= claimed <= 12, "2 a second for 5 seconds, and a second's worth for the step"


async def test_late_commits_are_looked_for_when_the_clock_was_set_back(queue: Queue) -> None:
    job = await queue.enqueue()
    floors: dict[str, Any] = {"floor_priorities": [0], "floor_seqs": [job + 1]}
    assert await queue.claimed_ids(1, **floors) == [job]
    late = await queue.enqueue()
    floors["floor_seqs"] = [late + 1]
    assert await queue.claimed_ids(1, **floors) == []
    await queue.step_clock(-30)
    await queue.move_clock(1)
    assert await queue.claimed_ids(1, **floors) == [late]


async def test_what_was_claimed_after_a_step_back_is_not_taken_for_forgotten(queue: Queue) -> None:
    """Its claim's reply is under way while a heartbeat lists what the worker knows of."""
    await queue.rows("heartbeat", [queue.worker], [])
    await queue.step_clock(-30)
    job = await queue.enqueue()
    await queue.claim_one()
    await queue.move_clock(1)
    await queue.rows("heartbeat", [queue.worker], [])
    assert await queue.status(job) == "claimed"
    await queue.move_clock(1)
    await queue.rows("heartbeat", [queue.worker], [])
    assert await queue.status(job) == "queued", "but now it is"


async def test_time_in_which_workers_were_heard_of_has_passed(queue: Queue) -> None:
    """Maintenance was held up; the clock was not set."""
    gone, live = [await queue.register(lease_seconds=10) for _ in range(2)]
    job = await queue.enqueue()
    await queue.claim_one(worker=gone)
    await keep_looking(queue)
    await queue.step_clock(15)
    await queue.rows("heartbeat", [live])
    await queue.step_clock(15)
    assert (await queue.maintain())["swept"] == 1
    assert await queue.status(job) == "queued"


async def test_whoever_looks_rarely_takes_a_gap_for_what_it_is(queue: Queue) -> None:
    """A program that does maintenance once a minute finds dead workers, too."""
    for _ in range(3):
        await queue.step_clock(60)
        await queue.maintain()
    worker = await queue.register(lease_seconds=10)
    await queue.enqueue()
    await queue.claim_one(worker=worker)
    await queue.step_clock(60)
    assert (await queue.maintain())["swept"] == 1


async def test_whoever_has_just_connected_takes_the_clock_at_its_word(queue: Queue) -> None:
    """`worker --once` in a fleet that was scaled to zero: what a dead worker held is claimed at once."""
    worker = await queue.register(lease_seconds=10)
    await queue.enqueue()
    await queue.claim_one(worker=worker)
    await keep_looking(queue)
    await queue.connection.execute("reset all")
    await queue.step_clock(3600)
    assert (await queue.maintain())["swept"] == 1
