"""Leases, and what a worker learns when it renews them."""

from uuid import uuid4

from tests.sql.queue import Queue


async def test_a_heartbeat_renews_the_leases_of_all_workers_named(queue: Queue) -> None:
    workers = [await queue.register(lease_seconds=10) for _ in range(2)]
    await queue.move_clock(9)
    assert await queue.rows("heartbeat", workers) == []
    left = "select extract(epoch from lease_until - fenceline.clock())::float8 from fenceline.worker where id = $1"
    assert [await queue.sql(left, worker) for worker in workers] == [10, 10]


async def test_a_lease_that_is_over_but_not_swept_can_be_renewed(queue: Queue) -> None:
    worker = await queue.register(lease_seconds=10)
    await queue.move_clock(60)
    assert await queue.rows("heartbeat", [worker]) == []
    assert await queue.call("sweep") == 0


async def test_a_stopped_or_unknown_worker_is_lost(queue: Queue) -> None:
    stopped = await queue.register()
    await queue.call("stop_worker", stopped)
    words = await queue.rows("heartbeat", [stopped, 999, queue.worker])
    assert [(row["worker_id"], row["word"]) for row in words] == [(stopped, "lost"), (999, "lost")]


async def test_a_cancel_is_told_with_the_attempt(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("cancel_job", job)
    (row,) = await queue.rows("heartbeat", [queue.worker])
    assert (row["worker_id"], row["job_id"], row["attempt_id"], row["word"]) == (
        queue.worker,
        job,
        attempt.attempt_id,
        "cancel",
    )


async def test_held_attempts_that_are_gone_are_stale(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    unknown = uuid4()
    words = await queue.rows("heartbeat", [queue.worker], [attempt.attempt_id, unknown])
    assert [(row["attempt_id"], row["word"]) for row in words] == [(unknown, "stale")]
    await queue.call("cancel_job", job, force=True)
    words = await queue.rows("heartbeat", [queue.worker], [attempt.attempt_id])
    assert [(row["attempt_id"], row["word"]) for row in words] == [(attempt.attempt_id, "stale")]


async def test_attempts_the_worker_does_not_know_are_released_with_its_next_list(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    await queue.claim_one()
    await queue.move_clock(1)
    # Its claim may still be under way to the worker, whose helper goes on telling that it lives.
    await queue.rows("heartbeat", [queue.worker])
    await queue.move_clock(1)
    await queue.rows("heartbeat", [queue.worker], [])
    assert await queue.status(job) == "claimed"
    await queue.move_clock(1)
    await queue.rows("heartbeat", [queue.worker], [])
    assert (await queue.status(job), (await queue.job(job))["attempt"]) == ("queued", 0)


async def test_without_a_list_nothing_is_released(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.claim_one()
    for _ in range(3):
        await queue.move_clock(1)
        await queue.rows("heartbeat", [queue.worker])
    assert await queue.status(job) == "claimed"


async def test_keep_leases_renews_and_tells_as_a_heartbeat_does(queue: Queue) -> None:
    stopped, kept = await queue.register(), await queue.register(lease_seconds=10)
    await queue.call("stop_worker", stopped)
    await queue.move_clock(9)
    words = await queue.rows("keep_leases", [stopped, 999, kept])
    assert [(row["worker_id"], row["word"]) for row in words] == [(stopped, "lost"), (999, "lost")]
    left = "select extract(epoch from lease_until - fenceline.clock())::float8 from fenceline.worker where id = $1"
    assert await queue.sql(left, kept) == 10
    job = await queue.enqueue()
    attempt = await queue.claim_one(worker=kept)
    await queue.call("cancel_job", job)
    (row,) = await queue.rows("keep_leases", [kept])
    assert (row["worker_id"], row["job_id"], row["attempt_id"], row["word"]) == (
        *(kept, job, attempt.attempt_id, "cancel"),
    )


async def test_a_worker_whose_loop_is_blocked_is_noted_until_it_turns_again(queue: Queue) -> None:
    worker = await queue.register()
    noted = (
        "select row(extract(epoch from fenceline.clock() - blocked_at)::float8, blocked_by)::text "
        "from fenceline.worker where id = $1"
    )
    await queue.rows("keep_leases", [worker], {worker: {"seconds": 12.5, "job_id": 77}})
    assert await queue.sql(noted, worker) == "(12.5,77)"
    await queue.rows("keep_leases", [worker])
    assert await queue.sql(noted, worker) == "(,)"
