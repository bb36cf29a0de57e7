"""The phases of a job, with the items of each, after they have ended."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Attempt, Queue

DAY = 86_400


async def items(queue: Queue, attempt: Attempt, to: str, *names: str, why: str | None = None) -> None:
    await queue.call("move_items", attempt.job_id, attempt.attempt_id, to, list(names), why)


async def begin(queue: Queue, attempt: Attempt, phase: str) -> None:
    await queue.call("set_progress", attempt.job_id, attempt.attempt_id, phase, {})


async def sets(queue: Queue, job: int) -> list[tuple[Any, ...]]:
    """Attempt, phase, and the items by their sets, where there are any."""
    return [
        (row["attempt"], row["phase"], {to: some for to, some in row["progress"].get("items", {}).items() if some})
        for row in await queue.rows("list_phases", job)
    ]


async def two_attempts(queue: Queue) -> int:
    job = await queue.enqueue(max_attempts=2)
    first = await queue.claim_one()
    await items(queue, first, "completed", "early")
    await begin(queue, first, "load")
    await items(queue, first, "completed", "a")
    await items(queue, first, "skipped", "b", why="closed")
    await begin(queue, first, "store")
    await items(queue, first, "failed", "a", why="disk full")
    await queue.finish(first, "failed", delay=0)
    second = await queue.claim_one()
    await items(queue, second, "in_progress", "c")
    await begin(queue, second, "store")
    await items(queue, second, "completed", "a")
    await queue.finish(second)
    return job


async def test_the_items_of_every_phase_stay_after_the_end(queue: Queue) -> None:
    job = await two_attempts(queue)
    assert await sets(queue, job) == [
        (1, None, {"completed": ["early"]}),
        (1, "load", {"completed": ["a"], "skipped": [{"item": "b", "reason": "closed"}]}),
        (1, "store", {"failed": [{"item": "a", "error": "disk full"}]}),
        (2, None, {"in_progress": ["c"]}),
        (2, "store", {"completed": ["a"]}),
    ]


async def test_a_phase_that_is_only_begun_in_a_new_attempt_keeps_the_one_before(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=2)
    first = await queue.claim_one()
    await begin(queue, first, "load")
    await items(queue, first, "completed", "a")
    await queue.finish(first, "failed", delay=0)
    second = await queue.claim_one()
    await begin(queue, second, "load")
    assert await sets(queue, job) == [(1, "load", {"completed": ["a"]}), (2, "load", {})]
    assert (await queue.job(job))["progress"] == {}


async def test_a_phase_ends_with_the_next_or_with_its_attempt(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    start = await queue.sql("select fenceline.clock()")
    await begin(queue, attempt, "load")
    await queue.move_clock(10)
    await begin(queue, attempt, "load")  # sent again
    await items(queue, attempt, "completed", "a")
    await begin(queue, attempt, "store")

    async def spans() -> list[tuple[Any, ...]]:
        return [
            (row["phase"], row["token"], row["started_at"] - start, row["ended_at"] and row["ended_at"] - start)
            for row in await queue.rows("list_phases", job)
        ]

    at = [timedelta(seconds=seconds) for seconds in (0, 10, 20)]
    assert await spans() == [("load", attempt.token, at[0], at[1]), ("store", attempt.token, at[1], None)]
    await queue.move_clock(10)
    await queue.finish(attempt)
    assert await spans() == [("load", attempt.token, at[0], at[1]), ("store", attempt.token, at[1], at[2])]


async def test_a_job_without_phases_has_none(queue: Queue) -> None:
    job = await queue.finished()
    assert await queue.rows("list_phases", job) == []
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.rows("list_phases", job + 1)
    assert error.value.sqlstate == "FL010"
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.rows("list_phases", job, "another tenant")
    assert error.value.sqlstate == "FL010"


@pytest.mark.parametrize("drops", ["rows", "days"])
async def test_phases_go_with_their_job(queue: Queue, drops: str) -> None:
    if drops == "days":
        await queue.call("create_partitions", 0)
    await two_attempts(queue)
    assert await queue.sql("select count(*) from fenceline.phase") == 4
    await queue.move_clock(6 * DAY)
    await queue.call("prune")
    assert await queue.sql("select count(*) from fenceline.phase") == 4
    await queue.move_clock(4 * DAY)
    await queue.call("prune")
    assert await queue.sql("select count(*) from fenceline.phase") == 0
    assert await queue.sql("select count(*) from fenceline.job") == 0


async def test_phases_of_a_live_job_stay_when_its_day_is_dropped(queue: Queue) -> None:
    await queue.call("create_partitions", 0)
    await queue.finished()
    job = await queue.enqueue(max_attempts=9)
    attempt = await queue.claim_one()
    await begin(queue, attempt, "load")
    await begin(queue, attempt, "store")
    await queue.finish(attempt, "failed", delay=100 * DAY)
    await queue.move_clock(10 * DAY)
    assert await queue.call("prune") == 1
    assert [phase for _, phase, _ in await sets(queue, job)] == ["load", "store"]


async def test_deleting_a_job_deletes_its_phases(queue: Queue) -> None:
    await queue.call("delete_job", await two_attempts(queue))
    assert await queue.sql("select count(*) from fenceline.phase") == 0
