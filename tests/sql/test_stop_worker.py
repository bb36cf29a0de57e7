"""A worker signs off."""

from tests.sql.queue import Queue


async def test_everything_it_holds_is_given_back_to_its_place(queue: Queue) -> None:
    jobs = [await queue.enqueue(max_attempts=1) for _ in range(3)]
    attempts = await queue.claim(2)
    assert await queue.call("stop_worker", queue.worker) == 2
    assert await queue.statuses(jobs) == ["queued"] * 3
    assert await queue.finish(attempts[0]) == "stale"
    assert await queue.call("stop_worker", queue.worker) == 0
    other = await queue.register()
    assert await queue.claimed_ids(3, worker=other) == jobs


async def test_a_job_asked_to_stop_ends_with_its_worker(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.claim_one()
    await queue.call("cancel_job", job)
    await queue.call("stop_worker", queue.worker)
    assert await queue.status(job) == "cancelled"


async def test_kinds_may_choose_to_fail_instead(queue: Queue) -> None:
    fails, goes_back = await queue.enqueue("fragile"), await queue.enqueue("sturdy")
    await queue.claim(2)
    assert await queue.call("stop_worker", queue.worker, ["fragile"]) == 2
    assert await queue.statuses([fails, goes_back]) == ["failed", "queued"]
    assert (await queue.job(fails))["error"]["message"] == "Worker received SIGTERM"
