"""The view `jobs`: every job once, with its status and the columns of the job JSON."""

from tests.sql.queue import Queue
from tests.sql.test_list_jobs import every_status

COLUMNS = [
    "id",
    "kind",
    "status",
    "waiting_for",
    "lane",
    "priority",
    "tenant",
    "args",
    "labels",
    "attempt",
    "max_attempts",
    "created_at",
    "created_by",
    "run_at",
    "claimed_at",
    "started_at",
    "finished_at",
    "worker",
    "phase",
    "progress",
    "result",
    "error",
    "errors",
    "cancel_requested_at",
    "retry_of",
    "parent",
    "delivery",
    "backend_job_id",
]


#: Since version 0.1: what was said at enqueue.
LATER = (
    *("runner", "snapshot_hash", "requires_hash", "identity", "after", "key", "key_limit", "resource_lock"),
    *("dedupe_key", "expires_at", "timeout", "group", "retry"),
)


async def test_the_columns_are_those_of_the_job_json(queue: Queue) -> None:
    await queue.enqueue()
    row = await queue.connection.fetchrow("select * from fenceline.jobs")
    assert row is not None
    assert list(row.keys()) == [*COLUMNS, "job_id", *LATER, "snapshot"]
    assert list(await queue.job(row["job_id"])) != []
    assert set(await queue.job(row["job_id"])) == set(COLUMNS)
    assert set(await queue.call("describe_job", row["job_id"])) == {*COLUMNS, *LATER}


async def test_every_job_is_there_once_in_its_status(queue: Queue) -> None:
    jobs = await every_status(queue)
    rows = await queue.connection.fetch("select job_id, status from fenceline.jobs")
    assert sorted((row["job_id"], row["status"]) for row in rows) == sorted(
        (job, status) for status, job in jobs.items()
    )
    for status, job in jobs.items():
        assert await queue.sql("select fenceline.job_status($1)", job) == status
        assert await queue.sql("select job_id from fenceline.jobs where status = $1", status) == job


async def test_the_story_of_a_job(queue: Queue) -> None:
    job = await queue.enqueue(labels={"a": "b"}, priority=3)
    created = await queue.job(job)
    attempt = await queue.claim_one()
    await queue.move_clock(1)
    await queue.rows("start_attempts", [job], [attempt.attempt_id])
    await queue.call("set_progress", job, attempt.attempt_id, "load", {"done": 1})
    running = await queue.job(job)
    assert (running["phase"], running["progress"], running["worker"]) == ("load", {"done": 1}, "worker")
    assert running["claimed_at"] < running["started_at"]
    await queue.move_clock(1)
    await queue.finish(attempt, result={"rows": 1})
    done = await queue.job(job)
    assert (done["phase"], done["progress"], done["result"], done["attempt"]) == ("load", {"done": 1}, {"rows": 1}, 1)
    assert done["claimed_at"] < done["started_at"] < done["finished_at"]
    unchanged = [
        "id",
        "kind",
        "lane",
        "priority",
        "tenant",
        "args",
        "labels",
        "max_attempts",
        "created_at",
        "created_by",
    ]
    assert all(created[name] == running[name] == done[name] for name in unchanged)


async def test_a_retry_shows_when_it_is_due(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.run(job, "failed", delay=60)
    due = "select extract(epoch from run_at - fenceline.clock())::float8 from fenceline.jobs where job_id = $1"
    assert await queue.sql(due, job) == 60


async def test_progress_of_an_earlier_attempt_is_not_shown(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("set_progress", job, attempt.attempt_id, "load", {"done": 1})
    await queue.finish(attempt, "failed", delay=0)
    await queue.claim_one()
    row = await queue.job(job)
    assert (row["phase"], row["progress"]) == (None, None)
