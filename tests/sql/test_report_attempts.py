"""Log lines and progress of many attempts in one statement."""

import json
from typing import Any
from uuid import UUID

from tests.sql.queue import Attempt, Queue


async def report(queue: Queue, attempts: list[Attempt], lines: list[Any], progress: list[Any]) -> list[UUID]:
    """The stale ones. A list of lists is an array of two dimensions to the driver, so JSON goes as text here."""
    rows = await queue.connection.fetch(
        "select * from fenceline.report_attempts($1, $2, $3::text[]::jsonb[], $4::text[]::jsonb[])",
        [attempt.job_id for attempt in attempts],
        [attempt.attempt_id for attempt in attempts],
        [None if some is None else json.dumps(some) for some in lines],
        [None if some is None else json.dumps(some) for some in progress],
    )
    return [row["attempt_id"] for row in rows]


async def test_many_attempts_report_at_once(queue: Queue) -> None:
    jobs = [await queue.enqueue() for _ in range(3)]
    first, second, third = await queue.claim(3)
    await queue.finish(second, "released")
    stale = await report(
        queue,
        [third, second, first],
        [None, [{"message": "late"}], [{"message": "a"}, {"message": "b"}]],
        [{"phase": "load", "progress": {"done": 1}}, None, {"progress": {"done": 2}}],
    )
    assert stale == [second.attempt_id]
    shown = [(job["phase"], job["progress"]) for job in [await queue.job(job_id) for job_id in jobs]]
    assert shown == [(None, {"done": 2}), (None, None), ("load", {"done": 1})]
    assert [row["message"] for job in jobs for row in await queue.rows("read_log", job)] == ["a", "b"]


async def test_a_report_is_a_sign_of_life(queue: Queue) -> None:
    await queue.set_lane("default", stale_timeout_seconds=60)
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.move_clock(50)
    assert await report(queue, [attempt], [[{"message": "here"}]], [None]) == []
    await queue.move_clock(50)
    await queue.call("heartbeat", [queue.worker])
    await queue.maintain()
    assert await queue.status(job) == "claimed"
    await queue.call("save_checkpoint", job, attempt.attempt_id, {"row": 1})
    await queue.move_clock(50)
    await queue.call("heartbeat", [queue.worker])
    await queue.maintain()
    assert await queue.status(job) == "claimed"
