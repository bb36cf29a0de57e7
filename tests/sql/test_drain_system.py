"""System drain: nothing new from outside, everything else goes on."""

from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_enqueues_from_outside_are_refused(queue: Queue) -> None:
    waiting = await queue.enqueue()
    finished = await queue.enqueue(priority=1)
    await queue.run(finished)
    await queue.call("drain_system", True, "ann", "upgrade")
    for call in (
        queue.enqueue(),
        queue.enqueue(key="k"),
        queue.rows("enqueue_many", "work", [{}]),
        queue.rows("enqueue_jobs", [{"kind": "work"}]),
        queue.rows("retry_job", finished),
    ):
        with pytest.raises(asyncpg.PostgresError) as error:
            await call
        assert error.value.sqlstate == "FL014"
    event = (await queue.events("system"))[0]
    assert (event["action"], event["actor"], event["reason"]) == ("system.drain", "ann", "upgrade")
    assert (event["before"], event["after"]) == ({"draining": False}, {"draining": True})
    await queue.run(waiting, "failed", delay=0)
    await queue.run(waiting)
    await queue.call("drain_system", False)
    assert (await queue.events("system"))[0]["action"] == "system.resume"
    await queue.enqueue()


@pytest.mark.parametrize("options", [{}, {"key": "k"}], ids=["plain", "keyed"])
async def test_children_and_schedules_go_on(queue: Queue, options: dict[str, Any]) -> None:
    await queue.call("set_schedule", "tick", {"kind": "work", "every": 60, "options": options})
    parent = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("drain_system", True)
    await queue.call("add_children", parent, attempt.attempt_id, "child", [{}], options)
    await queue.finish(attempt)
    await queue.call("run_schedule", "tick")
    assert await queue.sql("select count(*) from fenceline.job") == 3
    # Who only says that he is one, is not.
    for origin in ("child", "schedule"):
        with pytest.raises(asyncpg.PostgresError, match="draining"):
            await queue.rows("enqueue", "work", {}, options, origin=origin)
