"""Running a finished job again, as a new one."""

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_a_retry_is_a_new_job_with_the_same_facts_linked_to_the_old_one(queue: Queue) -> None:
    options = {
        "priority": 4,
        "max_attempts": 7,
        "tenant": "acme",
        "labels": {"a": "b"},
        "timeout": 5.0,
        "lane": "system",
        "snapshot": {"x": None, "y": [1]},
        "identity": "me",
        "retry": {"backoff": "fixed"},
        "key": "k",
        "key_limit": 2,
    }
    old = await queue.enqueue("work", {"n": 1}, **options)
    await queue.run(old, "failed_for_good", lane="system")
    made = (await queue.rows("retry_job", old, "ann"))[0]
    assert made["id"] == await queue.public_id(made["job_id"])
    columns = """kind, args::text, priority, max_attempts, tenant, labels, timeout_seconds, lane, snapshot,
                 snapshot_hash, identity, retry, key, key_limit"""
    rows = [
        tuple((await queue.connection.fetch(f"select {columns} from fenceline.job where id = $1", job))[0])
        for job in (old, made["job_id"])
    ]
    assert rows[0] == rows[1]
    job = await queue.job(made["job_id"])
    assert (job["retry_of"], job["created_by"], job["attempt"]) == (await queue.public_id(old), "ann", 0)
    assert await queue.status(old) == "failed"
    event = (await queue.events(job["retry_of"]))[0]
    assert (event["action"], event["actor"], event["tenant"]) == ("job.retry", "ann", "acme")
    assert (event["before"], event["after"]) == ({"status": "failed"}, {"job": made["id"]})


@pytest.mark.parametrize("outcome", ["succeeded", "succeeded_with_errors", "failed_for_good", "cancelled"])
async def test_every_end_can_be_retried(queue: Queue, outcome: str) -> None:
    old = await queue.finished(outcome=outcome)
    assert await queue.status((await queue.rows("retry_job", old))[0]["job_id"]) == "queued"


async def test_a_retry_takes_the_resource_lock_again(queue: Queue) -> None:
    old = await queue.finished(resource_lock="table")
    await queue.enqueue(resource_lock="table")
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.rows("retry_job", old)
    assert error.value.sqlstate == "FL013"


async def test_nobody_goes_round_an_approval_by_a_retry(queue: Queue) -> None:
    job = await queue.enqueue(needs_approval=True)
    await queue.call("reject_job", job)
    assert await queue.status((await queue.rows("retry_job", job))[0]["job_id"]) == "awaiting_approval"


async def test_a_retry_does_not_wait_for_dependencies_times_or_dedupe_keys_again(queue: Queue) -> None:
    first = await queue.enqueue()
    old = await queue.enqueue(after=[first], run_at=await queue.at(60), dedupe_key="d", expires_at=await queue.at(90))
    await queue.call("cancel_job", old)
    assert await queue.status((await queue.rows("retry_job", old))[0]["job_id"]) == "queued"
