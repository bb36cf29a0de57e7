"""What can be seen of attempts, events and workers."""

from tests.client.conftest import Worker

from fenceline import Fenceline
from fenceline.model.public_id import parse_id


async def test_attempts_and_events_of_a_job(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work", needs_approval=True)
    await job.approve("fine", actor="olga")
    await worker.run(job, "failed_for_good", error={"code": "error", "message": "broke"})
    (attempt,) = await job.attempts()
    assert (attempt.number, attempt.worker, attempt.outcome, attempt.final) == (1, "test", "failed", True)
    assert attempt.error is not None
    assert attempt.error["message"] == "broke"
    assert attempt.attempt_id is not None
    assert attempt.claimed_at is not None
    assert attempt.ended_at is not None
    assert attempt.claimed_at <= attempt.ended_at
    events = await job.events()
    assert [event.event for event in events][:2] == ["job.enqueue", "job.approve"]
    assert (events[1].actor, events[1].reason) == ("olga", "fine")
    assert events[-1].event == "attempt.end"


async def test_workers_and_rates(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    await worker.start(job)
    (seen,) = await app.system.workers()
    assert (seen.id, seen.name, seen.running, seen.runner) == (worker.worker_id, "test", 1, False)
    assert seen.lease_seconds == 3600
    await worker.run(await app.enqueue("work"))
    assert await app.system.lane_rates(1000) == {"default": 0.001}
    assert list(app.sync.system.lane_rates(1000)) == ["default"]
    await worker.connection.execute("select fenceline.stop_worker($1)", worker.worker_id)
    assert await app.system.workers() == []
    assert [gone.name for gone in await app.system.workers(stopped=True)] == ["test"]


async def test_why_a_job_waits(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work", needs_approval=True, after=[await app.enqueue("work")])
    told = await job.explain()
    assert (told.id, told.status, told.code) == (job.id, "awaiting_approval", "approval")
    assert [reason.code for reason in told.also] == ["dependencies"]
    assert told.since is not None
    assert app.sync.jobs.handle(job.id).explain().commands == [
        f"fenceline jobs {v} {job.id}" for v in ("approve", "reject")
    ]


async def test_children_locks_and_filters(app: Fenceline, worker: Worker) -> None:
    parent = await app.enqueue("whole", resource_lock="table", actor="ann")
    attempt = await worker.start(parent)
    add = "select fenceline.add_children(fenceline.parse_public_id($1), $2, 'part', array['{}'::json])"
    await worker.connection.execute(add, parent.id, attempt)
    (lock,) = await parent.locks()
    assert (lock.what, lock.name, lock.job, lock.held) == ("resource_lock", "table", parent.id, True)
    assert await app.system.locks() == [lock]
    await worker.finish(parse_id(parent.id), attempt)
    page = await parent.children()
    assert [child.parent for child in page.items] == [parent.id]
    assert [job.kind for job in (await app.jobs.list(parent=parent.id)).items] == ["part"]
    assert [job.id async for job in app.jobs.each(created_by="ann", kind="whole", worker="test")] == [parent.id]
    assert app.sync.jobs.handle(parent.id).children().items == page.items
