"""Items of a live attempt's progress."""

from tests.sql.queue import Queue


async def test_an_item_is_in_the_set_that_it_was_moved_to_last(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    me = (job, attempt.attempt_id)
    counts = await queue.call("move_items", *me, "in_progress", ["a", "b", "c", "a"])
    assert counts == {"in_progress": 3, "completed": 0, "skipped": 0, "failed": 0}
    await queue.call("move_items", *me, "failed", ["b"], "broken")
    await queue.call("move_items", *me, "skipped", ["c", "b"], "not needed")
    counts = await queue.call("move_items", *me, "completed", ["a", "new"])
    assert counts == {"in_progress": 0, "completed": 2, "skipped": 2, "failed": 0}
    assert (await queue.job(job))["progress"] == {
        "items": {
            "in_progress": [],
            "completed": ["a", "new"],
            "skipped": [{"item": "c", "reason": "not needed"}, {"item": "b", "reason": "not needed"}],
            "failed": [],
        }
    }
    assert await queue.call("move_items", *me, "completed", []) == counts


async def test_items_live_beside_progress_and_end_with_phase_and_attempt(queue: Queue) -> None:
    job = await queue.enqueue()
    first = await queue.claim_one()
    await queue.call("set_progress", job, first.attempt_id, "load", {"done": 1})
    await queue.call("move_items", job, first.attempt_id, "completed", ["a"])
    await queue.call("set_progress", job, first.attempt_id, None, {"done": 2})
    progress = (await queue.job(job))["progress"]
    assert (progress["done"], progress["items"]["completed"]) == (2, ["a"])
    await queue.call("set_progress", job, first.attempt_id, "store", {})
    assert (await queue.job(job))["progress"] == {}
    await queue.call("move_items", job, first.attempt_id, "failed", ["a"], "broken")
    await queue.finish(first, "failed", delay=0)
    second = await queue.claim_one()
    counts = await queue.call("move_items", job, second.attempt_id, "completed", ["b"])
    assert counts == {"in_progress": 0, "completed": 1, "skipped": 0, "failed": 0}
    assert (await queue.job(job))["phase"] is None
