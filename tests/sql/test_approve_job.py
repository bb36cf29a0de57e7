"""Approval: the first gate."""

from tests.sql.queue import Queue


async def test_an_approved_job_is_claimable(queue: Queue) -> None:
    job = await queue.enqueue(needs_approval=True)
    assert await queue.claim() == []
    assert await queue.call("approve_job", job, "ann", "looks good") == "queued"
    event = (await queue.events(await queue.public_id(job)))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("job.approve", "ann", "looks good")
    assert (event["before"], event["after"]) == ({"status": "awaiting_approval"}, {"status": "queued"})
    assert await queue.claimed_ids() == [job]


async def test_an_approved_job_goes_on_to_its_next_gate(queue: Queue) -> None:
    first = await queue.enqueue()
    waiting = await queue.enqueue(needs_approval=True, after=[first])
    scheduled = await queue.enqueue(needs_approval=True, run_at=await queue.at(60))
    keyed = await queue.enqueue(needs_approval=True, key="k")
    assert await queue.call("approve_job", waiting) == "waiting"
    assert await queue.call("approve_job", scheduled) == "scheduled"
    assert await queue.call("approve_job", keyed) == "waiting"
    assert await queue.statuses([waiting, keyed]) == ["waiting:dependencies", "waiting:key"]


async def test_a_job_that_awaits_approval_ends_with_its_dependency(queue: Queue) -> None:
    first = await queue.enqueue()
    job = await queue.enqueue(needs_approval=True, after=[first])
    await queue.run(first, "failed_for_good")
    assert await queue.status(job) == "cancelled"
