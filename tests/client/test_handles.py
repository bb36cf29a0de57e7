"""A job's handle: what can be asked of one job and done with it."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.conftest import Worker
from tests.support.patience import seconds_left

from fenceline import Fenceline, InvalidId, Job, JobCancelled, JobFailed, NotFound, Status, WrongStatus
from fenceline.model.public_id import format_id, parse_id

MISSING = format_id(12345)


async def test_a_handle_holds_the_public_id(app: Fenceline) -> None:
    job = await app.enqueue("work")

    assert app.jobs.handle(job.id) == job
    assert app.jobs.handle(job.id.lower().replace("-", "")).id == job.id
    assert repr(job) == f"<Job {job.id}>"
    assert job != await app.enqueue("work")
    assert job != job.id


@pytest.mark.parametrize("text", ["", "nonsense", "0003-G923-0VQV-SX", "😀" * 14])
async def test_what_is_no_id_is_refused_without_asking(text: str) -> None:
    nowhere = Fenceline("postgresql://nobody@127.0.0.1:1/nowhere")
    with pytest.raises(InvalidId, match="is not a job id"):
        nowhere.jobs.handle(text)
    with pytest.raises(InvalidId):
        await nowhere.jobs.get(text)


async def test_status_follows_the_job(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work", run_at=datetime.now(UTC) + timedelta(hours=1))
    assert await job.status() is Status.SCHEDULED

    job = await app.enqueue("work")
    assert await job.status() is Status.QUEUED
    assert not (await job.status()).is_final

    attempt_id = await worker.start(job)
    assert await job.status() is Status.CLAIMED
    await worker.connection.execute(
        "select fenceline.start_attempts(array[$1::bigint], array[$2::uuid])",
        parse_id(job.id),
        attempt_id,
    )
    assert await job.status() is Status.RUNNING
    assert await job.status() == "running"

    await worker.finish(parse_id(job.id), attempt_id)
    assert await job.status() is Status.SUCCEEDED
    assert (await job.status()).is_final


async def test_get_tells_everything(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work", {"n": 1}, labels={"a": "b"})
    await worker.run(job, result={"rows": 3})
    record = await job.get()

    assert record == await app.jobs.get(job.id)
    assert record.result == {"rows": 3}
    assert record.attempt == 1
    assert record.worker == "test"
    assert record.finished_at is not None
    assert record.claimed_at is not None
    assert record.created_at <= record.claimed_at <= record.finished_at
    assert record.created_at.tzinfo is not None
    assert (record.error, record.errors, record.parent, record.retry_of) == (None, None, None, None)


async def test_result_is_what_the_handler_declares(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def when() -> datetime:
        raise NotImplementedError

    job = await when.enqueue()
    await worker.run(job, result="2026-01-31T12:00:00Z")

    assert await job.result(timeout=seconds_left()) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert await app.jobs.handle(job.id).result(timeout=seconds_left()) == "2026-01-31T12:00:00Z"


async def test_no_result_is_none(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    await worker.run(job)

    assert await job.result(timeout=seconds_left()) is None
    assert await job.wait(timeout=seconds_left()) is Status.SUCCEEDED


async def test_a_success_with_errors_is_a_success(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    await worker.run(job, "succeeded_with_errors", result=[1])

    assert await job.result(timeout=seconds_left()) == [1]
    assert await job.wait(timeout=seconds_left()) is Status.SUCCEEDED_WITH_ERRORS


async def test_a_failure_raises_with_its_error(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    await worker.run(job, "failed_for_good", error={"message": "no such file", "type": "OSError"})

    with pytest.raises(JobFailed, match=re.escape(f"job {job.id} failed: no such file")) as failed:
        await job.result(timeout=seconds_left())
    assert failed.value.error is not None
    assert failed.value.error["type"] == "OSError"
    assert await job.wait(timeout=seconds_left()) is Status.FAILED


async def test_a_cancelled_job_has_no_result(app: Fenceline) -> None:
    job = await app.enqueue("work")
    assert await job.cancel("no longer wanted") is Status.CANCELLED

    with pytest.raises(JobCancelled, match="no longer wanted"):
        await job.result(timeout=seconds_left())
    with pytest.raises(WrongStatus) as wrong:
        await job.cancel()
    assert wrong.value.detail == "cancelled"


async def test_cancel_asks_a_handler_to_stop(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    attempt_id = await worker.start(job)

    assert await job.cancel("enough", grace_seconds=60, actor="ann") is Status.CLAIMED
    assert (await job.get()).cancel_requested_at is not None
    await worker.finish(parse_id(job.id), attempt_id, "cancelled")
    assert await job.wait(timeout=seconds_left()) is Status.CANCELLED


async def test_cancel_by_force_takes_the_fence(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    attempt_id = await worker.start(job)

    assert await job.cancel(force=True) is Status.CANCELLED
    verdict = await worker.connection.fetchval("select fenceline.finish_attempt($1, $2)", parse_id(job.id), attempt_id)
    assert verdict == "stale"


async def test_approve_and_reject(app: Fenceline) -> None:
    wanted = await app.enqueue("work", needs_approval=True)
    unwanted = await app.enqueue("work", needs_approval=True)

    assert await wanted.approve("fine", actor="ann") is Status.QUEUED
    assert await unwanted.reject("not now", actor="ann") is Status.CANCELLED
    with pytest.raises(WrongStatus):
        await wanted.approve()
    with pytest.raises(WrongStatus):
        await wanted.reject()
    with pytest.raises(JobCancelled, match="not now"):
        await unwanted.result(timeout=seconds_left())


async def test_retry_makes_a_new_job_of_the_same_type(app: Fenceline, worker: Worker) -> None:
    @app.job()
    async def count(upto: int) -> int:
        raise NotImplementedError

    job = await count.enqueue(upto=3)
    with pytest.raises(WrongStatus):
        await job.retry()
    await worker.run(job, "failed_for_good")
    again = await job.retry(actor="ann")

    assert again != job
    assert ((await again.get()).retry_of, (await again.get()).args) == (job.id, {"upto": 3})
    await worker.run(again, result=3)
    assert await again.result(timeout=seconds_left()) == 3


async def test_reprioritise_returns_the_old_priority(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work", priority=2)

    assert await job.reprioritise(9) == 2
    assert (await job.get()).priority == 9
    await worker.start(job)
    with pytest.raises(WrongStatus):
        await job.reprioritise(1)


async def test_delete_forgets_a_finished_job(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    with pytest.raises(WrongStatus):
        await job.delete()
    await worker.run(job)
    await job.delete(actor="ann")

    with pytest.raises(NotFound, match=re.escape(f"job {job.id} does not exist")):
        await job.get()


async def test_logs_in_order_and_after_a_line(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    assert await job.logs() == []
    attempt_id = await worker.start(job)
    lines = [{"message": "one"}, {"message": "two", "level": "error", "fields": {"n": 2}}, {"message": "three"}]
    await worker.connection.execute(
        "select fenceline.write_log($1, $2, $3)", parse_id(job.id), attempt_id, json.dumps(lines)
    )

    logs = await job.logs()
    assert [(line.message, line.level, line.fields) for line in logs] == [
        ("one", "info", None),
        ("two", "error", {"n": 2}),
        ("three", "info", None),
    ]
    assert await job.logs(after=logs[0]) == logs[1:]
    assert await job.logs(limit=2) == logs[:2]
    assert await job.logs(after=logs[-1]) == []


async def test_progress_is_what_was_last_reported(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    assert (await job.progress()).phase is None
    attempt_id = await worker.start(job)
    await worker.connection.execute(
        "select fenceline.set_progress($1, $2, 'load', $3)", parse_id(job.id), attempt_id, json.dumps({"done": 3})
    )

    progress = await job.progress()
    assert (progress.phase, progress.progress) == ("load", {"done": 3})


async def test_verbs_on_a_job_that_is_not_there(app: Fenceline) -> None:
    job: Job[Any] = app.jobs.handle(MISSING)
    for verb in (
        job.get(),
        job.status(),
        job.progress(),
        job.cancel(),
        job.approve(),
        job.reject(),
        job.retry(),
        job.reprioritise(1),
        job.delete(),
        job.wait(seconds_left()),
        job.result(seconds_left()),
    ):
        with pytest.raises(NotFound):
            await verb
