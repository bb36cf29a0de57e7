"""Late writes that were refused stand in the job's timeline, until the job is forgotten."""

from uuid import uuid4

from tests.sql.queue import Attempt, Json, Queue


async def note(queue: Queue, attempt: Attempt, write: str) -> None:
    await queue.call("note_refused_writes", [attempt.job_id], [attempt.attempt_id], write)


async def refused(queue: Queue, job: int) -> list[Json]:
    return [row["details"] for row in await queue.rows("job_events", job) if row["event"] == "attempt.refused"]


async def lost_attempt(queue: Queue) -> Attempt:
    await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("cancel_job", attempt.job_id, force=True)
    assert await queue.finish(attempt) == "stale"
    return attempt


async def test_they_are_counted_by_attempt_and_sort(queue: Queue) -> None:
    attempt = await lost_attempt(queue)
    for write in ("log", "finish", "log"):
        await note(queue, attempt, write)
    [shown] = await refused(queue, attempt.job_id)
    assert (shown["attempt"], shown["attempt_id"]) == (1, str(attempt.attempt_id))
    assert shown["writes"] == {"finish": 1, "log": 2}


async def test_of_live_attempts_and_of_those_that_never_were_nothing_is_noted(queue: Queue) -> None:
    attempt = await lost_attempt(queue)
    await queue.enqueue()
    live = await queue.claim_one()
    before = await queue.contents()
    await note(queue, live, "finish")
    await queue.call("note_refused_writes", [attempt.job_id], [uuid4()], "finish")
    await queue.call("note_refused_writes", [live.job_id], [attempt.attempt_id], "finish")
    assert await queue.contents() == before


async def test_they_go_with_the_job(queue: Queue) -> None:
    attempt = await lost_attempt(queue)
    await note(queue, attempt, "finish")
    await queue.call("delete_job", attempt.job_id)
    assert await queue.sql("select count(*) from fenceline.refused_write") == 0
