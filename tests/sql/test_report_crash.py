"""A worker process died: who is suspected, who is refunded, who is quarantined."""

from tests.sql.queue import Queue


async def test_a_job_that_kills_its_process_alone_three_times_is_quarantined(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    for death in (1, 2, 3):
        worker = await queue.register()
        attempt = await queue.claim_one(worker=worker, alone=death > 1)
        assert (attempt.number, attempt.alone) == (1, death > 1)
        assert await queue.call("report_crash", worker, None, {"signal": 9}) == 1
        assert await queue.finish(attempt) == "stale"
    row = await queue.job(job)
    assert (row["status"], row["error"]["code"], row["error"]["signal"]) == ("failed", "quarantined", 9)
    assert [attempt["outcome"] for attempt in await queue.attempts(job)] == ["crashed", "crashed", "failed"]


async def test_jobs_that_shared_a_process_are_refunded_and_rerun_alone(queue: Queue) -> None:
    jobs = [await queue.enqueue(max_attempts=1) for _ in range(3)]
    innocent = await queue.enqueue()
    worker = await queue.register()
    await queue.claim(3, worker=worker)
    assert await queue.call("report_crash", worker) == 3
    assert await queue.statuses(jobs) == ["queued"] * 3
    assert await queue.claimed_ids(9) == [innocent]
    alone = await queue.claim(9, alone=True)
    assert [attempt.job_id for attempt in alone] == jobs
    assert [(attempt.number, attempt.alone) for attempt in alone] == [(1, True)] * 3


async def test_a_shared_crash_is_no_death_of_its_own(queue: Queue) -> None:
    jobs = [await queue.enqueue() for _ in range(2)]
    for _ in range(4):
        worker = await queue.register()
        await queue.claim(2, worker=worker)
        await queue.claim(2, worker=worker, alone=True)
        await queue.call("report_crash", worker)
    assert await queue.statuses(jobs) == ["queued", "queued"]


async def test_attempts_that_had_not_started_are_released_to_their_place(queue: Queue) -> None:
    suspect, waiting, behind = [await queue.enqueue() for _ in range(3)]
    worker = await queue.register()
    attempts = await queue.claim(2, worker=worker)
    assert await queue.call("report_crash", worker, [attempts[0].attempt_id]) == 2
    assert await queue.claimed_ids(9) == [waiting, behind]
    assert await queue.claimed_ids(9, alone=True) == [suspect]
    assert (await queue.attempts(waiting))[0]["outcome"] == "released"


async def test_a_suspect_stays_one_over_a_failure_and_a_timer(queue: Queue) -> None:
    job = await queue.enqueue()
    worker = await queue.register()
    await queue.claim(1, worker=worker)
    await queue.call("report_crash", worker)
    attempt = await queue.claim_one(alone=True)
    await queue.finish(attempt, "failed", delay=10)
    await queue.move_clock(10)
    await queue.maintain()
    assert await queue.claim() == []
    assert await queue.claimed_ids(alone=True) == [job]


async def test_a_crashed_job_that_was_asked_to_stop_is_cancelled(queue: Queue) -> None:
    job = await queue.enqueue()
    worker = await queue.register()
    await queue.claim(1, worker=worker)
    await queue.call("cancel_job", job, "ann", "enough")
    await queue.call("report_crash", worker)
    assert await queue.status(job) == "cancelled"


async def test_a_crashed_worker_can_claim_no_more(queue: Queue) -> None:
    worker = await queue.register()
    await queue.call("report_crash", worker)
    assert [row["word"] for row in await queue.rows("heartbeat", [worker])] == ["lost"]


async def test_who_blocked_a_process_is_blamed_and_its_neighbours_are_not(queue: Queue) -> None:
    over, costly, neighbour = [await queue.enqueue(max_attempts=1, timeout=2) for _ in range(3)]
    worker = await queue.register()
    first, second, _ = await queue.claim(3, worker=worker)
    report = {"suspects": [], "timed_out": [str(first.attempt_id)], "set_apart": [str(second.attempt_id)]}
    told = await queue.call("report_death", worker, report)
    assert told == {"ended": 3, "left": 0, "suspects": [await queue.public_id(costly)], "quarantined": []}
    row = await queue.job(over)
    assert (row["status"], row["error"]["code"]) == ("failed", "timeout")
    assert "timeout of 2 seconds" in row["error"]["message"]
    assert await queue.claimed_ids(9) == [neighbour]
    (apart,) = await queue.claim(9, alone=True)
    assert (apart.job_id, apart.number) == (costly, 1)
    assert await queue.sql("select deaths from fenceline.running where job_id = $1", costly) == 0


async def test_a_quarantined_job_is_named_as_such_and_is_no_suspect(queue: Queue) -> None:
    job = await queue.enqueue()
    for death in (1, 2, 3):
        worker = await queue.register()
        (attempt,) = await queue.claim(1, worker=worker, alone=death > 1)
        told = await queue.call("report_death", worker, {"suspects": [str(attempt.attempt_id)]})
        named = "quarantined" if death == 3 else "suspects"
        other = "suspects" if death == 3 else "quarantined"
        assert (told[named], told[other]) == ([await queue.public_id(job)], []), death
