"""Letting a job go on that waits for its time."""

from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_a_scheduled_job_is_claimable_at_once(queue: Queue) -> None:
    job = await queue.enqueue(run_at="2040-01-01T00:00:00Z")
    assert await queue.claimed_ids(1) == []
    await queue.call("run_job_now", job, "ann", "the customer waits")
    event = (await queue.events(await queue.public_id(job)))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("job.run_now", "ann", "the customer waits")
    assert await queue.claimed_ids(1) == [job]


async def test_it_joins_at_the_tail(queue: Queue) -> None:
    later = await queue.enqueue(run_at="2040-01-01T00:00:00Z")
    first = await queue.enqueue()
    await queue.call("run_job_now", later)
    assert await queue.claimed_ids(2) == [first, later]


async def test_its_key_still_holds(queue: Queue) -> None:
    first = await queue.enqueue(key="k")
    later = await queue.enqueue(key="k", run_at="2040-01-01T00:00:00Z")
    assert await queue.claimed_ids(1) == [first]
    await queue.call("run_job_now", later)
    assert (await queue.job(later))["status"] == "waiting"
    assert await queue.claimed_ids(1) == []


@pytest.mark.parametrize("options", [{}, {"needs_approval": True, "run_at": "2040-01-01T00:00:00Z"}], ids=str)
async def test_what_waits_for_nothing_or_for_something_else_is_refused(queue: Queue, options: dict[str, Any]) -> None:
    job = await queue.enqueue(**options)
    with pytest.raises(asyncpg.PostgresError) as refused:
        await queue.call("run_job_now", job)
    assert refused.value.sqlstate == "FL011"


async def test_another_tenants_job_is_a_missing_one(queue: Queue) -> None:
    later = await queue.enqueue(run_at="2040-01-01T00:00:00Z")
    refused = None
    try:
        await queue.call("run_job_now", later, None, None, "another")
    except asyncpg.PostgresError as error:
        refused = error.sqlstate
    assert refused == "FL010"
    assert (await queue.job(later))["status"] == "scheduled"
