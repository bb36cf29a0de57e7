"""Steps and checkpoints in the database: what is kept, for whom, and how long."""

from typing import Any

from tests.sql.queue import Queue


async def steps(queue: Queue, job: int) -> list[tuple[Any, ...]]:
    return [(row["name"], row["status"], row["result"]) for row in await queue.rows("list_steps", job)]


async def test_steps_are_listed_in_their_order(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    me = (job, attempt.attempt_id)
    await queue.call("record_step", *me, "unlisted", "h", 0)
    await queue.call("list_steps_ahead", *me, ["a", "b", "c", "b"])
    await queue.call("record_step", *me, "b", "h", {"rows": 1}, ran_seconds=1.5)
    await queue.call("record_step", *me, "a", "h", error={"message": "no"})
    await queue.call("record_step", *me, "later", "h", 2)
    assert sorted(await steps(queue, job)) == [
        ("a", "failed", None),
        ("b", "done", {"rows": 1}),
        ("c", "listed", None),
        ("later", "done", 2),
        ("unlisted", "done", 0),
    ]
    order = [name for name, _status, _result in await steps(queue, job)]
    assert [name for name in order if name != "unlisted"] == ["a", "b", "c", "later"]
    await queue.call("list_steps_ahead", *me, ["b", "a"])  # again, by another attempt, say
    order = [name for name, _status, _result in await steps(queue, job)]
    assert order.index("b") < order.index("a")
    assert ("b", "done", {"rows": 1}) in await steps(queue, job)


async def test_work_of_a_job_goes_with_it(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("record_step", job, attempt.attempt_id, "a", "h", 1)
    await queue.call("save_checkpoint", job, attempt.attempt_id, {"row": 1})
    await queue.call("save_checkpoint", job, attempt.attempt_id, None)
    assert await queue.sql("select state from fenceline.checkpoint") is None
    await queue.finish(attempt)
    await queue.call("delete_job", job)
    assert await queue.sql("select count(*) from fenceline.step") == 0
    assert await queue.sql("select count(*) from fenceline.checkpoint") == 0


async def test_a_start_tells_how_parents_ended(queue: Queue) -> None:
    good = await queue.finished("good")
    bad = await queue.enqueue("bad", {"n": 1}, labels={"a": "b"}, max_attempts=1)
    ids = [await queue.public_id(job) for job in (good, bad)]
    job = await queue.enqueue("after", after={"jobs": ids, "policy": "always"})
    await queue.run(bad, "failed", error={"code": "error", "message": "no"})
    attempt = await queue.claim_one()
    assert attempt.job_id == job
    start = await queue.call("attempt_start", job)
    assert (start["checkpoint"], start["steps"]) == (None, None)
    told = [(parent["id"], parent["kind"], parent["status"]) for parent in start["parents"]]
    assert told == [(ids[0], "good", "succeeded"), (ids[1], "bad", "failed")]
    assert start["parents"][1]["error"] == {"code": "error", "message": "no"}
    assert (start["parents"][1]["args"], start["parents"][1]["labels"]) == ({"n": 1}, {"a": "b"})
