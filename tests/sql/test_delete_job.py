"""Deleting a finished job."""

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_nothing_is_kept_but_the_audit(queue: Queue) -> None:
    job = await queue.enqueue(labels={"a": "b"})
    attempt = await queue.claim_one()
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "hello"}])
    await queue.call("set_progress", job, attempt.attempt_id, "phase")
    await queue.finish(attempt)
    public_id = await queue.public_id(job)
    await queue.call("delete_job", job, "ann")
    for table in ("job", "history", "log", "progress"):
        assert await queue.sql(f"select count(*) from fenceline.{table}") == 0
    event = (await queue.events(public_id))[0]
    assert (event["action"], event["actor"]) == ("job.delete", "ann")
    assert (event["before"], event["after"]) == ({"kind": "work", "status": "succeeded"}, None)
    assert await queue.call("get_job", job) is None
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.call("cancel_job", job)
    assert error.value.sqlstate == "FL010"
    assert public_id in str(error.value)
