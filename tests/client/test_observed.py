"""What can be seen of attempts, events and workers."""

from tests.client.conftest import Worker

from fenceline import Fenceline


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
    assert await app.system.lane_rates(10) == {"default": 0.1}
    assert list(app.sync.system.lane_rates(10)) == ["default"]
    await worker.connection.execute("select fenceline.stop_worker($1)", worker.worker_id)
    assert await app.system.workers() == []
    assert [gone.name for gone in await app.system.workers(stopped=True)] == ["test"]
