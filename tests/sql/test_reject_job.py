"""Rejection: the end of a job that awaits approval."""

from tests.sql.queue import Queue


async def test_a_rejected_job_ends_with_the_reason(queue: Queue) -> None:
    job = await queue.enqueue(needs_approval=True)
    waiter = await queue.enqueue(after=[job])
    assert await queue.call("reject_job", job, "ann", "too risky") == "cancelled"
    row = await queue.job(job)
    assert (row["status"], row["error"]) == ("cancelled", {"code": "rejected", "message": "too risky"})
    assert await queue.status(waiter) == "cancelled"
    event = (await queue.events(row["id"]))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("job.reject", "ann", "too risky")
    assert (event["before"], event["after"]) == ({"status": "awaiting_approval"}, {"status": "cancelled"})
