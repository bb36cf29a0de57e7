"""Changing the priority of a job that no worker holds."""

from typing import Any

import pytest
from tests.sql.queue import Queue


async def test_a_queued_job_moves_in_the_order(queue: Queue) -> None:
    first, second, third = [await queue.enqueue(priority=1) for _ in range(3)]
    assert await queue.call("reprioritise_job", third, 5, "ann") == 1
    assert await queue.call("reprioritise_job", first, -5) == 1
    event = (await queue.events(await queue.public_id(third)))[0]
    assert (event["action"], event["actor"]) == ("job.reprioritise", "ann")
    assert (event["before"], event["after"]) == ({"priority": 1}, {"priority": 5})
    assert await queue.claimed_ids(3) == [third, second, first]


@pytest.mark.parametrize(
    "options", [{"run_at": "2040-01-01T00:00:00Z"}, {"needs_approval": True}, {"key": "k"}], ids=str
)
async def test_a_job_that_is_not_claimable_yet_too(queue: Queue, options: dict[str, Any]) -> None:
    job = await queue.enqueue(**options)
    assert await queue.call("reprioritise_job", job, 5) == 0
    assert (await queue.job(job))["priority"] == 5


async def test_in_a_lane_with_ageing_the_rank_moves_by_the_difference(queue: Queue) -> None:
    await queue.set_lane("ageing", ageing_seconds=60)
    old = await queue.enqueue(lane="ageing", priority=0)
    await queue.move_clock(30)
    new = await queue.enqueue(lane="ageing", priority=2)
    assert await queue.call("reprioritise_job", old, 2) == 0
    assert (await queue.job(old))["priority"] == 2
    assert await queue.claimed_ids(1, "ageing") == [old]
    rank = "select seq from fenceline.ready where job_id = $1"
    before = await queue.sql(rank, new)
    await queue.call("reprioritise_job", new, -32768)
    await queue.call("reprioritise_job", new, 32767)
    await queue.call("reprioritise_job", new, 2)
    assert await queue.sql(rank, new) == before


async def test_a_keyed_job_overtakes_others_of_its_key(queue: Queue) -> None:
    _, second, third = [await queue.enqueue(key="k") for _ in range(3)]
    attempt = await queue.claim_one()
    await queue.call("reprioritise_job", third, 1)
    await queue.finish(attempt)
    assert await queue.claimed_ids() == [third]
    assert await queue.status(second) == "waiting:key"
