"""claimed → running."""

from uuid import uuid4

from tests.sql.queue import Queue


async def test_a_started_attempt_is_running(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    assert await queue.rows("start_attempts", [job], [attempt.attempt_id]) == []
    row = await queue.job(job)
    assert row["status"] == "running"
    await queue.move_clock(5)
    await queue.rows("start_attempts", [job], [attempt.attempt_id])
    assert (await queue.job(job))["started_at"] == row["started_at"]


async def test_the_start_may_be_told_later(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.move_clock(10)
    await queue.rows("start_attempts", [job], [attempt.attempt_id], [4.0])
    ago = "select extract(epoch from fenceline.clock() - started_at)::float8 from fenceline.jobs"
    assert await queue.sql(ago) == 4


async def test_stale_pairs_come_back_also_beside_the_live_attempt_of_the_same_job(queue: Queue) -> None:
    job = await queue.enqueue()
    old = await queue.run(job, "released")
    live = await queue.claim_one()
    unknown = uuid4()
    stale = await queue.rows("start_attempts", [job, job, 5], [old.attempt_id, live.attempt_id, unknown])
    assert [(row["job_id"], row["attempt_id"]) for row in stale] == [(job, old.attempt_id), (5, unknown)]
    assert await queue.status(job) == "running"
