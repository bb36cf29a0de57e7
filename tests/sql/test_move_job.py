"""Moving a job to another lane."""

from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_it_keeps_its_priority_and_its_place_in_time(queue: Queue) -> None:
    moved = await queue.enqueue(priority=3)
    there = await queue.enqueue(priority=3, lane="system")
    higher = await queue.enqueue(priority=4, lane="system")
    assert await queue.call("move_job", moved, "system", "ann", "too slow here") == "default"
    await queue.set_lane("system", slots=9)
    assert await queue.claimed_ids(1) == []
    assert await queue.claimed_ids(9, "system") == [higher, moved, there]
    event = (await queue.events(await queue.public_id(moved)))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("job.move", "ann", "too slow here")
    assert (event["before"], event["after"]) == ({"lane": "default"}, {"lane": "system"})


async def test_out_of_a_lane_with_ageing_and_into_one_that_is_fair(queue: Queue) -> None:
    await queue.set_lane("default", ageing_seconds=60)
    await queue.set_lane("system", fair=True, slots=9)
    job = await queue.enqueue(priority=7)
    await queue.call("move_job", job, "system")
    row = await queue.connection.fetchrow("select * from fenceline.ready")
    assert row is not None
    assert (row["priority"], row["own_priority"], row["seq"], row["fair"]) == (7, None, job, True)
    assert await queue.claimed_ids(1, "system") == [job]


@pytest.mark.parametrize("gate", ["timer", "approval", "key"])
async def test_a_job_at_a_gate_goes_on_in_the_other_lane(queue: Queue, gate: str) -> None:
    gates: dict[str, dict[str, Any]] = {
        "timer": {"run_at": await queue.at(60)},
        "approval": {"needs_approval": True},
        "key": {"key": "k"},
    }
    job = await queue.enqueue(**gates[gate])
    await queue.call("move_job", job, "system")
    if gate == "approval":
        await queue.call("approve_job", job)
    await queue.move_clock(61)
    await queue.maintain()
    assert await queue.claimed_ids(1, "system") == [job]


async def test_what_is_claimed_ended_or_missing_and_lanes_that_are_not_there(queue: Queue) -> None:
    held = await queue.enqueue()
    await queue.claim_one()
    done = await queue.finished()
    waiting = await queue.enqueue()
    for job, lane, tenant, code in (
        (held, "system", None, "FL011"), (done, "system", None, "FL011"), (waiting, "absent", None, "FL001"),
        (waiting, "system", "another", "FL010"),
    ):  # fmt: skip
        with pytest.raises(asyncpg.PostgresError) as refused:
            await queue.call("move_job", job, lane, None, None, tenant)
        assert refused.value.sqlstate == code
    assert (await queue.job(waiting))["lane"] == "default"
