"""Cancel: at once where nobody runs the job, by request and grace where somebody does, by force always."""

from typing import Any

import pytest
from tests.conftest import Connect
from tests.sql.queue import Queue


@pytest.mark.parametrize(
    "options", [{}, {"run_at": "2040-01-01T00:00:00Z"}, {"needs_approval": True}, {"key": "k"}], ids=str
)
async def test_an_unclaimed_job_ends_now(queue: Queue, options: dict[str, Any]) -> None:
    job = await queue.enqueue(**options)
    before = await queue.status(job)
    assert await queue.call("cancel_job", job, "ann", "not needed") == "cancelled"
    row = await queue.job(job)
    assert (row["status"], row["error"]) == ("cancelled", {"code": "cancelled", "message": "not needed"})
    event = (await queue.events(row["id"]))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("job.cancel", "ann", "not needed")
    assert event["before"] == {"status": before.partition(":")[0]}
    assert event["after"] == {"status": "cancelled"}


async def test_a_running_job_is_asked_and_keeps_its_fence_for_the_grace(queue: Queue, connect: Connect) -> None:
    heard: list[Any] = []
    listener = await connect()
    await listener.add_listener("fenceline_cancel", lambda *said: heard.append(said[3]))
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.rows("start_attempts", [job], [attempt.attempt_id])
    assert await queue.call("cancel_job", job, "ann") == "running"
    assert (await queue.job(job))["cancel_requested_at"] is not None
    await listener.execute("select 1")
    assert heard == [f"{queue.worker}/{attempt.attempt_id}"]
    assert [row["word"] for row in await queue.rows("heartbeat", [queue.worker])] == ["cancel"]
    await queue.move_clock(29)
    await queue.call("sweep")
    assert await queue.call("set_progress", job, attempt.attempt_id, "cleanup") is True
    await queue.move_clock(1)
    assert await queue.call("sweep") == 1
    assert await queue.status(job) == "cancelled"
    assert await queue.call("set_progress", job, attempt.attempt_id, "cleanup") is False
    assert await queue.finish(attempt) == "stale"
    assert (await queue.attempts(job))[0]["actor"] == "ann"


async def test_the_grace_may_be_given_and_a_second_request_changes_nothing(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.claim_one()
    await queue.call("cancel_job", job, "ann", "first", grace_seconds=5)
    await queue.move_clock(4)
    await queue.call("cancel_job", job, "bob", "second", grace_seconds=500)
    await queue.move_clock(1)
    await queue.call("sweep")
    assert (await queue.job(job))["error"]["message"] == "first"


async def test_force_rotates_the_fence_at_once(queue: Queue) -> None:
    job = await queue.enqueue(resource_lock="table", key="k")
    attempt = await queue.claim_one()
    assert await queue.call("cancel_job", job, "ann", force=True) == "cancelled"
    assert await queue.finish(attempt) == "stale"
    event = (await queue.events(await queue.public_id(job)))[0]
    assert (event["action"], event["before"], event["after"]) == (
        "job.kill",
        {"status": "claimed"},
        {"status": "cancelled"},
    )
    assert await queue.sql("select count(*) from fenceline.resource_lock") == 0
    assert await queue.sql("select count(*) from fenceline.key_holder") == 0


async def test_force_may_follow_a_request(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.claim_one()
    await queue.call("cancel_job", job)
    assert await queue.call("cancel_job", job, force=True) == "cancelled"


async def test_waiters_of_a_cancelled_job_end_or_go_on_by_their_policy(queue: Queue) -> None:
    first = await queue.enqueue()
    strict = await queue.enqueue(after=[first])
    tolerant = await queue.enqueue(after={"jobs": [first], "policy": "always"})
    await queue.call("cancel_job", first)
    assert await queue.statuses([strict, tolerant]) == ["cancelled", "queued"]
