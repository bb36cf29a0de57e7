"""Reclaiming what nobody holds any more."""

from tests.sql.queue import Attempt, Queue


async def test_the_jobs_of_a_lost_worker_go_back_to_the_tail(queue: Queue) -> None:
    worker = await queue.register(lease_seconds=10)
    job = await queue.enqueue(resource_lock="table")
    attempt = await queue.claim_one(worker=worker)
    other = await queue.enqueue()
    await queue.move_clock(10)
    assert await queue.call("sweep") == 0  # the lease is over, but not longer than to the moment
    await queue.move_clock(0.001)
    assert await queue.call("sweep") == 1
    assert await queue.status(job) == "queued"
    assert await queue.finish(attempt) == "stale"
    ended = (await queue.attempts(job))[0]
    assert (ended["outcome"], ended["final"], ended["error"]["code"]) == ("lost", False, "lost")
    assert await queue.claimed_ids(2) == [other, job]
    assert [row["word"] for row in await queue.rows("heartbeat", [worker])] == ["lost"]


async def test_a_job_lost_with_its_last_attempt_fails_and_frees_its_locks(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1, resource_lock="table", key="k")
    waiter = await queue.enqueue(after=[job])
    worker = await queue.register(lease_seconds=10)
    await queue.claim_one(worker=worker)
    await queue.move_clock(11)
    await queue.call("sweep")
    row = await queue.job(job)
    assert (row["status"], row["error"]["code"]) == ("failed", "lost")
    assert await queue.sql("select count(*) from fenceline.resource_lock") == 0
    assert await queue.sql("select count(*) from fenceline.key_holder") == 0
    assert await queue.status(waiter) == "cancelled"


async def test_a_lost_job_that_was_asked_to_stop_is_cancelled(queue: Queue) -> None:
    worker = await queue.register(lease_seconds=10)
    job = await queue.enqueue()
    await queue.claim_one(worker=worker)
    await queue.call("cancel_job", job, "ann", "enough", grace_seconds=3600)
    await queue.move_clock(11)
    await queue.call("sweep")
    assert await queue.status(job) == "cancelled"


async def test_a_heartbeat_in_time_keeps_everything(queue: Queue) -> None:
    worker = await queue.register(lease_seconds=10)
    job = await queue.enqueue()
    await queue.claim_one(worker=worker)
    for _ in range(5):
        await queue.move_clock(9)
        await queue.rows("heartbeat", [worker])
        assert await queue.call("sweep") == 0
    assert await queue.status(job) == "claimed"


async def test_a_stale_attempt_is_retried_where_the_lane_says_so(queue: Queue) -> None:
    await queue.set_lane("lane", stale_timeout_seconds=300, on_stale="retry")
    job = await queue.enqueue(lane="lane", max_attempts=2)
    for status in ("queued", "failed"):
        attempt = await queue.claim_one("lane")
        await queue.move_clock(301)
        assert await queue.call("sweep") == 1
        assert await queue.finish(attempt) == "stale"
        assert await queue.status(job) == status
    assert (await queue.job(job))["error"]["code"] == "stale"


async def test_a_stale_attempt_fails_where_the_lane_says_so(queue: Queue) -> None:
    await queue.set_lane("lane", stale_timeout_seconds=300, on_stale="fail")
    job = await queue.enqueue(lane="lane")
    await queue.claim_one("lane")
    await queue.move_clock(301)
    await queue.call("sweep")
    row = await queue.job(job)
    assert (row["status"], row["attempt"], row["error"]["code"]) == ("failed", 1, "stale")


async def test_who_only_heartbeats_for_five_minutes_has_failed_and_a_person_retries(queue: Queue) -> None:
    await queue.set_lane("lane", stale_timeout_seconds=300, on_stale="fail")
    job = await queue.enqueue(lane="lane", max_attempts=3)
    attempt = await queue.claim_one("lane")
    for seconds in range(20, 300, 20):
        await queue.move_clock(20)
        await queue.rows("heartbeat", [queue.worker], [attempt.attempt_id])
        await queue.call("sweep")
        assert await queue.status(job) == "claimed", seconds
    await queue.move_clock(21)
    await queue.call("sweep")
    assert (await queue.job(job))["error"]["code"] == "stale"
    assert await queue.finish(attempt) == "stale"
    retried = (await queue.rows("retry_job", job))[0]["job_id"]
    assert (await queue.claim_one("lane")).job_id == retried


async def test_signs_of_life_keep_an_attempt_from_being_stale(queue: Queue) -> None:
    await queue.set_lane("lane", stale_timeout_seconds=300)
    job = await queue.enqueue(lane="lane")
    attempt = await queue.claim_one("lane")
    await queue.move_clock(200)
    await queue.rows("start_attempts", [job], [attempt.attempt_id])
    await queue.move_clock(200)
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "still here"}])
    await queue.move_clock(200)
    await queue.call("set_progress", job, attempt.attempt_id, None, {"done": 1})
    await queue.move_clock(300)
    assert await queue.call("sweep") == 0
    await queue.move_clock(0.001)
    assert await queue.call("sweep") == 1


async def test_a_stale_rule_holds_for_what_runs_already(queue: Queue) -> None:
    await queue.enqueue()
    await queue.claim_one()
    await queue.move_clock(400)
    assert await queue.call("sweep") == 0
    await queue.set_lane("default", stale_timeout_seconds=300)
    assert await queue.call("sweep") == 1


async def lose(queue: Queue, *, start: bool, promises: bool = True) -> Attempt:
    """The next job, claimed by a worker that is lost; `start`: it has told of the start."""
    worker = await queue.register(lease_seconds=10)
    if promises:
        await queue.call("promise_starts", worker)
    attempt = await queue.claim_one(worker=worker)
    if start:
        await queue.call("start_attempts", [attempt.job_id], [attempt.attempt_id])
    await queue.move_clock(11)
    assert await queue.call("sweep") == 1
    return attempt


async def test_a_last_attempt_that_is_lost_before_its_start_is_refunded(queue: Queue) -> None:
    job, other = await queue.enqueue(max_attempts=1), await queue.enqueue()
    for _ in range(4):
        attempt = await lose(queue, start=False)
        assert (attempt.job_id, attempt.number) == (job, 1), "in its place, and with all its attempts"
    assert [(row["outcome"], row["final"]) for row in await queue.attempts(job)] == [("lost", False)] * 4
    assert (await lose(queue, start=True)).job_id == job
    row = await queue.job(job)
    assert (row["status"], row["error"]["code"]) == ("failed", "lost")
    assert await queue.claimed_ids(2) == [other]


async def test_a_worker_that_does_not_tell_of_starts_gets_no_refund(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    await lose(queue, start=False, promises=False)
    assert await queue.status(job) == "failed"


async def test_a_start_that_was_not_told_is_refunded_once_and_then_told_before(queue: Queue) -> None:
    """A job that takes its machine down in the first moment is counted from the second time on."""
    job = await queue.enqueue(max_attempts=3)
    first = await lose(queue, start=False)
    assert (first.number, first.more) == (1, None), "with attempts left nobody must tell"
    for number in (1, 2, 3):
        attempt = await lose(queue, start=True)
        assert (attempt.number, attempt.more) == (number, {"tell_start": True})
    assert await queue.status(job) == "failed"
    assert len(await queue.attempts(job)) == 4


async def test_a_job_that_was_lost_before_its_start_expires_as_if_it_had_not_been_claimed(queue: Queue) -> None:
    job = await queue.enqueue(expires_at=await queue.at(30))
    await lose(queue, start=False)
    await queue.move_clock(30)
    await queue.maintain()
    assert await queue.status(job) == "cancelled"
