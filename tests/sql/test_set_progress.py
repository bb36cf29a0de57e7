"""Phase and progress of a live attempt."""

from typing import Any

from tests.sql.queue import Attempt, Queue


async def shown(queue: Queue, attempt: Attempt, phase: str | None, progress: Any) -> tuple[Any, Any]:
    assert await queue.call("set_progress", attempt.job_id, attempt.attempt_id, phase, progress) is True
    job = await queue.job(attempt.job_id)
    return job["phase"], job["progress"]


async def test_a_new_phase_starts_with_empty_progress(queue: Queue) -> None:
    await queue.enqueue()
    attempt = await queue.claim_one()
    assert await shown(queue, attempt, None, {"done": 1}) == (None, {"done": 1})
    assert await shown(queue, attempt, "load", None) == ("load", None)
    assert await shown(queue, attempt, None, {"done": 2}) == ("load", {"done": 2})
    assert await shown(queue, attempt, "load", None) == ("load", {"done": 2})
    assert await shown(queue, attempt, None, None) == ("load", {"done": 2})
    assert await shown(queue, attempt, "store", {"done": 0}) == ("store", {"done": 0})
    assert await shown(queue, attempt, "check", None) == ("check", None)


async def test_a_new_attempt_starts_empty(queue: Queue) -> None:
    job = await queue.enqueue()
    first = await queue.claim_one()
    await shown(queue, first, "load", {"done": 1})
    await queue.finish(first, "failed", delay=0)
    second = await queue.claim_one()
    assert await shown(queue, second, None, None) == (None, None)
    assert await queue.call("set_progress", job, first.attempt_id, "late", {"done": 9}) is False
    assert await shown(queue, second, None, None) == (None, None)
