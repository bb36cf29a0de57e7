"""Ticks are decided once, all at once, by one caller."""

from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.sql.clock import START
from tests.sql.queue import Json, Queue

NOON = datetime.fromisoformat(START)
HOUR = timedelta(hours=1)


async def schedule(queue: Queue, name: str = "s", **settings: Any) -> Json:
    row: Json = await queue.call("set_schedule", name, {"kind": "work", "every": 3600, **settings})
    return row


async def fire(queue: Queue, expected: datetime | None, *ticks: datetime, **changes: Any) -> int | None:
    """As a scheduler that looks at the schedule now."""
    now = await queue.sql("select fenceline.clock()")
    given = {
        "name": "s",
        "revision": 1,
        "expected": expected,
        "until": now,
        "ticks": list(ticks),
        "outcomes": ["fire"] * len(ticks),
        "from": [None] * len(ticks),
        "next": now + HOUR,
        **changes,
    }
    made: int | None = await queue.call("fire_schedule", **given)
    return made


async def due(queue: Queue) -> list[str]:
    return [row[0]["name"] for row in await queue.rows("due_schedules")]


async def ticks(queue: Queue) -> list[tuple[int, str]]:
    """Hour and outcome."""
    rows = await queue.rows("list_ticks", "s")
    return [(row["tick_at"].hour, row["outcome"]) for row in reversed(rows)]


async def test_a_tick_makes_a_job_and_the_next_is_set(queue: Queue) -> None:
    await schedule(queue, args={"n": 1})
    assert await due(queue) == ["s"]
    assert await fire(queue, None) == 0
    assert await due(queue) == []
    await queue.move_clock(3600)
    assert await due(queue) == ["s"]
    assert await fire(queue, NOON + HOUR, NOON + HOUR) == 1
    job = await queue.job((await queue.claim_one()).job_id)
    assert (job["kind"], job["args"], job["created_by"]) == ("work", {"n": 1}, "schedule:s")
    assert datetime.fromisoformat(job["run_at"]) == NOON + HOUR
    [row] = await queue.rows("schedules", "s")
    assert datetime.fromisoformat(row[0]["next_at"]) == NOON + 2 * HOUR
    assert datetime.fromisoformat(row[0]["last_at"]) == NOON + HOUR
    assert row[0]["last_job"] == job["id"]


async def test_who_read_something_else_changes_nothing(queue: Queue) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.move_clock(3600)
    before = await queue.contents()
    stale: list[tuple[datetime | None, Json]] = [
        (None, {}),
        (NOON, {}),
        (NOON + HOUR, {"revision": 0}),
        (NOON + HOUR, {"revision": 2}),
        (NOON + HOUR, {"name": "other"}),
    ]
    for expected, read in stale:
        assert await fire(queue, expected, NOON + HOUR, **read) is None
        assert await queue.contents() == before
    assert await fire(queue, NOON + HOUR, NOON + HOUR) == 1
    assert await fire(queue, NOON + HOUR, NOON + HOUR) is None
    assert await queue.sql("select count(*) from fenceline.job") == 1


async def test_before_its_time_nothing_fires(queue: Queue) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.move_clock(3599)
    assert await fire(queue, NOON + HOUR, NOON + HOUR) is None


async def test_skipped_ticks_are_noted(queue: Queue) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.move_clock(3 * 3600)
    three = [NOON + n * HOUR for n in (1, 2, 3)]
    made = await fire(queue, NOON + HOUR, *three, outcomes=["missed", "window", "fire"], **{"from": [NOON, None, None]})
    assert made == 1
    assert await ticks(queue) == [(13, "missed"), (14, "window"), (15, "fired")]


async def test_a_paused_schedule_does_not_fire(queue: Queue) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.call("set_schedule", "s", {"paused": True})
    await queue.move_clock(3600)
    assert await due(queue) == []
    assert await fire(queue, NOON + HOUR, NOON + HOUR, revision=2) is None


async def test_a_refused_job_is_noted_and_the_schedule_goes_on(queue: Queue) -> None:
    await queue.enqueue(resource_lock="table")
    await schedule(queue, options={"resource_lock": "table"})
    await fire(queue, None)
    await queue.move_clock(3600)
    assert await fire(queue, NOON + HOUR, NOON + HOUR) == 0
    [row] = await queue.rows("list_ticks", "s")
    assert (row["outcome"], row["job"]) == ("refused", None)
    assert "resource 'table' is locked" in row["error"]
    assert await due(queue) == []


async def test_a_job_that_is_there_already_is_noted(queue: Queue) -> None:
    first = await queue.enqueue(dedupe_key="d")
    await schedule(queue, options={"dedupe_key": "d"})
    await fire(queue, None)
    await queue.move_clock(3600)
    assert await fire(queue, NOON + HOUR, NOON + HOUR) == 0
    [row] = await queue.rows("list_ticks", "s")
    assert (row["outcome"], row["job"]) == ("deduplicated", await queue.public_id(first))


@pytest.mark.parametrize(
    "kind, options, priority, max_attempts",
    [
        ({}, {}, 0, 2),
        ({"lane": "interactive"}, {}, 0, 2),
        ({"priority": 4, "max_attempts": 7}, {}, 4, 7),
        ({"priority": 4, "max_attempts": 7}, {"priority": -1, "max_attempts": 1}, -1, 1),
    ],
)
async def test_periodic_jobs_have_priority_0_and_are_retried_once(
    queue: Queue, kind: Json, options: Json, priority: int, max_attempts: int
) -> None:
    await queue.call("declare_kinds", {"work": kind})
    await schedule(queue, options=options)
    await queue.rows("run_schedule", "s")
    [row] = await queue.connection.fetch("select priority, max_attempts, lane from fenceline.job")
    assert tuple(row) == (priority, max_attempts, kind.get("lane", "default"))


async def test_a_system_drain_does_not_stop_schedules(queue: Queue) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.call("drain_system", True)
    await queue.move_clock(3600)
    assert await fire(queue, NOON + HOUR, NOON + HOUR) == 1


async def test_a_schedule_without_further_ticks_rests(queue: Queue) -> None:
    await schedule(queue)
    assert await fire(queue, None, next=None) == 0
    await queue.move_clock(1e9)
    assert await due(queue) == []
    assert (await queue.maintain())["schedules_due"] == 0


async def test_maintenance_tells_when_the_next_one_is_due(queue: Queue) -> None:
    assert (await queue.maintain())["next_seconds"] is None
    await schedule(queue)
    done = await queue.maintain()
    assert (done["schedules_due"], done["next_seconds"]) == (1, None)
    await fire(queue, None)
    done = await queue.maintain()
    assert (done["schedules_due"], done["next_seconds"]) == (0, 3600)
    await queue.enqueue(run_at=await queue.at(60))
    assert (await queue.maintain())["next_seconds"] == 60


async def test_one_that_cannot_be_computed_is_left_alone_for_a_minute(queue: Queue) -> None:
    await schedule(queue)
    await queue.rows("defer_schedule", "s", 1, "no such zone here")
    assert await due(queue) == []
    [row] = await queue.rows("schedules", "s")
    assert row[0]["error"] == "no such zone here"
    await queue.move_clock(60)
    assert await due(queue) == ["s"]
    await fire(queue, None)
    [row] = await queue.rows("schedules", "s")
    assert row[0]["error"] is None


async def test_old_ticks_are_forgotten(queue: Queue) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.move_clock(3600)
    await fire(queue, NOON + HOUR, NOON + HOUR)
    await queue.move_clock(7 * 86400 - 1)
    await queue.call("upkeep")
    assert len(await ticks(queue)) == 1
    await queue.move_clock(61)
    await queue.call("upkeep")
    assert await ticks(queue) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"ticks": [NOON], "outcomes": ["fire"], "from": [None]},
        {"ticks": [NOON + 2 * HOUR], "outcomes": ["fire"], "from": [None]},
        {"ticks": [None], "outcomes": ["fire"], "from": [None]},
        {"next": NOON},
        {"next": NOON + HOUR},
        {"until": NOON - HOUR},
    ],
)
async def test_ticks_that_cannot_be_are_refused(queue: Queue, changes: Json) -> None:
    await schedule(queue)
    await fire(queue, None)
    await queue.move_clock(3600)
    with pytest.raises(asyncpg.PostgresError, match="ticks of schedule 's' must lie after") as error:
        await fire(queue, NOON + HOUR, **changes)
    assert error.value.sqlstate == "FL031"
