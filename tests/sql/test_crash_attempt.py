"""A process that ran one attempt and nothing else has died; its worker lives."""

from tests.sql.queue import Queue


async def test_the_third_death_of_its_own_process_is_the_end(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    for death in (1, 2, 3):
        attempt = await queue.claim_one()  # not alone: it has a process to itself wherever it runs
        assert (attempt.number, attempt.alone, attempt.token) == (1, False, attempt.token)
        assert await queue.call("crash_attempt", job, attempt.attempt_id, {"signal": 6}) == "accepted"
        assert await queue.call("crash_attempt", job, attempt.attempt_id, {"signal": 6}) == "already", death
        assert await queue.finish(attempt) == "stale"
    row = await queue.job(job)
    assert (row["status"], row["error"]["code"], row["error"]["signal"]) == ("failed", "quarantined", 6)
    assert [attempt["outcome"] for attempt in await queue.attempts(job)] == ["crashed", "crashed", "failed"]


async def test_deaths_of_a_worker_and_of_its_own_process_add_up(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("crash_attempt", job, attempt.attempt_id)
    for _ in range(2):
        worker = await queue.register()
        attempt = (await queue.claim(1, worker=worker) or await queue.claim(1, worker=worker, alone=True))[0]
        await queue.call("report_crash", worker)
    attempt = await queue.claim_one(alone=True)
    assert await queue.call("crash_attempt", job, attempt.attempt_id) == "accepted"
    assert (await queue.job(job))["error"]["code"] == "quarantined"


async def test_the_crash_of_a_gone_attempt_changes_nothing(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.finish(attempt)
    assert await queue.call("crash_attempt", job, attempt.attempt_id) == "stale"
    assert await queue.status(job) == "succeeded"


async def test_a_crashed_job_that_was_asked_to_stop_is_cancelled(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("cancel_job", job, "ann", "enough")
    assert await queue.call("crash_attempt", job, attempt.attempt_id) == "accepted"
    assert await queue.status(job) == "cancelled"


async def test_a_worker_learns_what_became_of_its_attempts(queue: Queue) -> None:
    well, asked, gone = [await queue.enqueue() for _ in range(3)]
    attempts = await queue.claim(3)
    await queue.call("cancel_job", asked, grace_seconds=8)
    await queue.call("cancel_job", gone, force=True)
    await queue.move_clock(3)
    words = await queue.rows("check_attempts", [well, asked, gone], [a.attempt_id for a in attempts])
    assert [(w["attempt_id"], w["word"], w["grace_seconds"]) for w in words] == [
        (attempts[1].attempt_id, "cancel", 5.0),
        (attempts[2].attempt_id, "stale", 0.0),
    ]
