"""What code declares and what operators say: the latter is stronger and lasts."""

from datetime import datetime
from typing import Any

from tests.sql.queue import Json, Queue

CODE = {"kind": "work", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "args": {"n": 1}}


async def declare(queue: Queue, **changes: Any) -> None:
    await queue.rows("declare_schedules", {"s": {**CODE, **changes}})


async def change(queue: Queue, **changes: Any) -> Json:
    row: Json = await queue.call("set_schedule", "s", changes, "ann")
    return row


async def get(queue: Queue) -> Json:
    [row] = await queue.rows("schedules", "s")
    schedule: Json = row[0]
    return schedule


async def settle(queue: Queue) -> datetime:
    """What the next scheduler does: compute the next tick."""
    schedule = await get(queue)
    next_at: datetime = await queue.sql("select fenceline.clock() + interval '1 hour'")
    await queue.rows(
        "fire_schedule", "s", schedule["revision"], None, datetime.fromisoformat(schedule["now"]), [], [], [], next_at
    )
    return next_at


async def test_a_schedule_of_an_operator(queue: Queue) -> None:
    made = await change(queue, kind="work", every=60)
    assert (made["source"], made["misfire"], made["misfire_limit"], made["timezone"]) == ("operator", "once", 10, "UTC")
    assert (made["windows"], made["paused"], made["args"], made["tenant"]) == ([], False, {}, "default")
    assert (await change(queue, options={"tenant": "acme"}))["tenant"] == "acme"
    events = await queue.events("s")
    assert [(event["action"], event["actor"]) for event in events] == [
        ("schedule.change", "ann"),
        ("schedule.create", "ann"),
    ]


async def test_an_operators_word_survives_the_next_start(queue: Queue) -> None:
    await declare(queue)
    await change(queue, cron="0 4 * * *", windows=[{"from": "22:00", "to": "23:00"}], paused=True)
    await declare(queue)
    await declare(queue, cron="0 5 * * *", args={"n": 2})
    now = await get(queue)
    assert (now["cron"], now["paused"], now["timezone"]) == ("0 4 * * *", True, "Europe/Berlin")
    assert (now["args"], now["source"]) == ({"n": 2}, "code")
    assert now["overrides"].keys() == {"cron", "windows", "paused"}


async def test_an_operators_word_can_be_taken_back(queue: Queue) -> None:
    await declare(queue)
    await change(queue, every=60, timezone="UTC")
    now = await change(queue, every=None, timezone=None)
    assert (now["cron"], now["every"], now["timezone"]) == ("0 3 * * *", None, "Europe/Berlin")
    assert now["overrides"] == {}


async def test_cron_and_interval_replace_each_other(queue: Queue) -> None:
    await declare(queue)
    now = await change(queue, every=60)
    assert (now["cron"], now["every"]) == (None, 60)
    now = await change(queue, cron="1 * * * *")
    assert (now["cron"], now["every"]) == ("1 * * * *", None)


async def test_a_start_that_says_nothing_new_leaves_the_next_tick_alone(queue: Queue) -> None:
    await declare(queue)
    next_at = await settle(queue)
    before = await get(queue)
    await queue.move_clock(10)
    await declare(queue)
    now = await get(queue)
    assert datetime.fromisoformat(now["next_at"]) == next_at
    assert (now["revision"], now["settled_at"]) == (before["revision"], before["settled_at"])
    assert now["declared_at"] > before["declared_at"]
    assert await queue.rows("due_schedules") == []


async def test_only_a_change_of_the_timing_moves_the_next_tick(queue: Queue) -> None:
    await declare(queue)
    next_at = await settle(queue)
    await queue.move_clock(10)
    now = await change(queue, args={"n": 3}, misfire="all", windows=[{"from": "22:00", "to": "23:00"}])
    assert datetime.fromisoformat(now["next_at"]) == next_at
    now = await change(queue, timezone="UTC")
    assert (now["next_at"], datetime.fromisoformat(now["settled_at"])) == (None, datetime.fromisoformat(now["now"]))


async def test_what_came_during_a_pause_is_not_made_up_for(queue: Queue) -> None:
    await declare(queue)
    await settle(queue)
    assert (await change(queue, paused=True))["next_at"] is None
    await queue.move_clock(86400)
    assert await queue.rows("due_schedules") == []
    now = await change(queue, paused=False)
    assert datetime.fromisoformat(now["settled_at"]) == datetime.fromisoformat(now["now"])
    assert len(await queue.rows("due_schedules")) == 1


async def test_run_now_works_in_a_pause_and_is_in_the_audit(queue: Queue) -> None:
    await declare(queue)
    await change(queue, paused=True)
    made = (await queue.rows("run_schedule", "s", "ann"))[0]
    assert made["created"]
    job = await queue.job(made["job_id"])
    assert (job["args"], job["created_by"], job["status"], job["run_at"]) == ({"n": 1}, "schedule:s", "queued", None)
    event = (await queue.events("s"))[0]
    assert (event["action"], event["actor"], event["after"]) == ("schedule.run", "ann", {"job": job["id"]})


async def test_a_deleted_schedule_comes_back_only_from_code(queue: Queue) -> None:
    await declare(queue)
    await change(queue, paused=True)
    await queue.rows("delete_schedule", "s", "ann")
    assert await queue.rows("schedules", "s") == []
    assert (await queue.events("s"))[0]["action"] == "schedule.delete"
    await declare(queue)
    assert (await get(queue))["paused"] is False
