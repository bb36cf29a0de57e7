"""Reclaiming what nobody holds any more."""

from tests.sql.queue import Queue


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
