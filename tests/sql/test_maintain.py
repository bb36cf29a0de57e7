"""What has to happen at least once a second: timers, expiry, keys, dependencies; once per interval in a fleet."""

from tests.sql.queue import Queue


async def test_the_work_is_done_once_per_interval(queue: Queue) -> None:
    assert await queue.call("maintain", 0.5) is not None
    await queue.move_clock(0.4)
    assert await queue.call("maintain", 0.5) is None
    await queue.move_clock(0.1)
    assert await queue.call("maintain", 0.5) is not None


async def test_due_timers_go_on_in_the_order_of_their_times(queue: Queue) -> None:
    late = await queue.enqueue(run_at=await queue.at(20))
    early = await queue.enqueue(run_at=await queue.at(10))
    never = await queue.enqueue(run_at=await queue.at(21))
    await queue.move_clock(20)
    assert (await queue.maintain())["promoted"] == 2
    assert await queue.claimed_ids(5) == [early, late]
    assert await queue.status(never) == "scheduled"


async def test_it_says_when_the_next_timer_is_due(queue: Queue) -> None:
    assert (await queue.maintain())["next_seconds"] is None
    await queue.enqueue(run_at=await queue.at(20))
    await queue.enqueue(run_at=await queue.at(5))
    assert 4 < (await queue.maintain())["next_seconds"] <= 5


async def test_a_due_timer_with_a_key_waits_for_the_key(queue: Queue) -> None:
    await queue.enqueue(key="k")
    await queue.claim_one()
    job = await queue.enqueue(key="k", run_at=await queue.at(10))
    assert await queue.status(job) == "scheduled"
    await queue.move_clock(10)
    await queue.maintain()
    assert await queue.status(job) == "waiting:key"


async def test_jobs_expire_wherever_they_wait(queue: Queue) -> None:
    expires = await queue.at(10)
    first = await queue.enqueue()
    jobs = [
        await queue.enqueue(expires_at=expires),
        await queue.enqueue(expires_at=expires, run_at=await queue.at(60)),
        await queue.enqueue(expires_at=expires, needs_approval=True),
        await queue.enqueue(expires_at=expires, after=[first]),
        await queue.enqueue(expires_at=expires, key="k"),
    ]
    running = await queue.enqueue(expires_at=expires, priority=9)
    attempt = await queue.claim_one()
    await queue.rows("start_attempts", [running], [attempt.attempt_id])
    await queue.move_clock(9)
    assert (await queue.maintain())["expired"] == 0
    await queue.move_clock(1)
    assert (await queue.maintain())["expired"] == 5
    assert await queue.statuses(jobs) == ["cancelled"] * 5
    assert {(await queue.job(job))["error"]["code"] for job in jobs} == {"expired"}
    assert await queue.status(running) == "running"
    await queue.maintain()
    assert await queue.sql("select count(*) from fenceline.deadline") == 0


async def test_a_claimed_job_that_is_given_back_after_its_expiry_expires(queue: Queue) -> None:
    job = await queue.enqueue(expires_at=await queue.at(10))
    attempt = await queue.claim_one()
    await queue.move_clock(11)
    assert (await queue.maintain())["expired"] == 0
    await queue.finish(attempt, "released")
    assert (await queue.maintain())["expired"] == 1
    assert await queue.status(job) == "cancelled"


async def test_parked_keys_are_admitted(queue: Queue) -> None:
    jobs = [await queue.enqueue(key="k", key_limit=2) for _ in range(3)]
    assert (await queue.maintain())["admitted"] == 2
    assert await queue.statuses(jobs) == ["queued", "queued", "waiting:key"]
    await queue.call("cancel_job", jobs[0])
    assert (await queue.maintain())["admitted"] == 1


async def test_more_jobs_than_one_look_admits_follow_in_the_next(queue: Queue) -> None:
    await queue.rows("enqueue_many", "work", [{}] * 600, {"key": "k", "key_limit": 1000})
    assert (await queue.maintain())["admitted"] == 500
    assert (await queue.maintain())["admitted"] == 100
    assert len(await queue.claim(1000)) == 600


async def test_lost_workers_are_swept(queue: Queue) -> None:
    worker = await queue.register(lease_seconds=10)
    await queue.enqueue()
    await queue.claim_one(worker=worker)
    await queue.move_clock(11)
    assert (await queue.maintain())["swept"] == 1


async def test_what_had_to_be_remembered_for_a_while_is_forgotten(queue: Queue) -> None:
    await queue.enqueue(idempotency_key="i")
    await queue.claim(1, request_id="11111111-1111-1111-1111-111111111111")
    await queue.claim(1, wait_seconds=30)
    await queue.call("watch_jobs", [1], 30)
    short = await queue.register(lease_seconds=1)
    await queue.move_clock(9 * 86400)
    queue.worker = await queue.register(lease_seconds=86400)
    await queue.maintain()  # sweeps
    await queue.move_clock(9 * 86400)
    await queue.call("upkeep")
    for table in ("idempotency", "claim_request", "waiter", "watch"):
        assert await queue.sql(f"select count(*) from fenceline.{table}") == 0
    assert await queue.sql("select count(*) from fenceline.worker where id = $1", short) == 0
