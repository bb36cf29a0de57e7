"""Problems as they happen to people, each planted in a few calls of the SQL functions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from tests.sql.queue import Queue

#: Plants it and returns the job that somebody would ask about; None: it is about no job.
Plant = Callable[[Queue], Awaitable[int | None]]


@dataclass(frozen=True, slots=True)
class Problem:
    plant: Plant
    code: str | None  # what `explain` says of the job
    check: str | None  # what `doctor` says
    sample: str | None = None  # what the metrics say, as Prometheus reads it

    def __str__(self) -> str:
        return self.plant.__name__


async def drained_lane(queue: Queue) -> int:
    await queue.set_lane("default", enabled=False)
    return await queue.enqueue()


async def lane_without_workers(queue: Queue) -> int:
    await queue.call("stop_worker", queue.worker)
    return await queue.enqueue()


async def only_a_server_is_up(queue: Queue) -> int:
    """It has signed on for the webhooks that it delivers: no worker for anybody's jobs."""
    await queue.call("stop_worker", queue.worker)
    await queue.register("server@host", lanes=["webhooks"], kinds=["fenceline.webhook"])
    return await queue.enqueue()


async def only_workers_of_another_lane(queue: Queue) -> int:
    await queue.call("stop_worker", queue.worker)
    await queue.register("elsewhere", lanes=["system"])
    return await queue.enqueue()


async def kind_that_nobody_knows(queue: Queue) -> int:
    await queue.call("stop_worker", queue.worker)
    await queue.register("old", kinds=["other"])
    return await queue.enqueue("renamed")


async def lane_without_slots(queue: Queue) -> int:
    await queue.set_lane("default", slots=0)
    return await queue.enqueue()


async def lane_that_is_gone(queue: Queue) -> int:
    job = await queue.enqueue(lane="system")
    await queue.sql("delete from fenceline.lane where name = 'system'")
    return job


async def full_lane_with_a_long_holder(queue: Queue) -> int:
    await queue.set_lane("default", slots=1)
    await queue.enqueue()
    await queue.claim_one()
    job = await queue.enqueue()
    await queue.move_clock(400)
    return job


async def rate_limit(queue: Queue) -> int:
    await queue.set_lane("default", rate_per_second=0.01, burst=1)
    await queue.finished()
    return await queue.enqueue()


async def key_that_is_held(queue: Queue) -> int:
    await queue.enqueue(key="acct:7")
    await queue.maintain()
    await queue.claim_one()
    return await queue.enqueue(key="acct:7")


async def dependency_that_waits_itself(queue: Queue) -> int:
    first = await queue.enqueue(run_at=await queue.at(3600))
    return await queue.enqueue(after=[first])


async def dependency_that_is_gone(queue: Queue) -> int:
    first = await queue.enqueue(run_at=await queue.at(3600))
    job = await queue.enqueue(after=[first])
    await queue.sql("delete from fenceline.timer")
    await queue.sql("delete from fenceline.dependency_check")
    await queue.sql("delete from fenceline.job where id = $1", first)
    return job


async def approval_that_nobody_gives(queue: Queue) -> int:
    job = await queue.enqueue(needs_approval=True)
    await queue.move_clock(7200)
    return job


async def timer_that_nobody_looks_at(queue: Queue) -> int:
    job = await queue.enqueue(run_at=await queue.at(60))
    await queue.move_clock(120)
    return job


async def wait_that_nobody_ends(queue: Queue) -> int:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("begin_wait", job, attempt.attempt_id, "approved", "approved", 60.0)
    await queue.finish(attempt, "waiting")
    await queue.move_clock(120)
    return job


async def schedule_that_nobody_fires(queue: Queue) -> None:
    await queue.call("set_schedule", "nightly", {"kind": "work", "cron": "0 3 * * *"})
    await queue.sql("update fenceline.schedule set due_at = fenceline.clock() - interval '1 minute'")


async def suspect_of_a_crash(queue: Queue) -> int:
    for _ in range(2):
        await queue.enqueue()
    attempts = await queue.claim(2)
    await queue.call("report_crash", queue.worker)
    await queue.register("another")
    return attempts[0].job_id


async def every_worker_is_frozen(queue: Queue) -> int:
    blocking = await queue.enqueue()
    await queue.claim_one()
    await queue.sql("update fenceline.worker set blocked_at = fenceline.clock(), blocked_by = $1", blocking)
    return await queue.enqueue()


async def frozen_worker(queue: Queue) -> int:
    job = await queue.enqueue()
    await queue.claim_one()
    await queue.sql("update fenceline.worker set blocked_at = fenceline.clock(), blocked_by = $1", job)
    await queue.move_clock(400)
    return job


async def dead_worker(queue: Queue) -> int:
    job = await queue.enqueue()
    gone = await queue.register("gone", lease_seconds=10)
    await queue.claim_one(worker=gone)
    await queue.move_clock(20)
    return job


async def lock_that_is_held_for_long(queue: Queue) -> int:
    for _ in range(2):
        await queue.enqueue()
    for attempt in await queue.claim(2):
        await queue.rows("take_lock", attempt.job_id, attempt.attempt_id, "db", "orders", uuid4(), [])
    await queue.move_clock(120)
    return attempt.job_id


async def lock_that_a_program_forgot(queue: Queue) -> int:
    await queue.call("take_outside_lock", "default", "db", "orders", uuid4(), [], 3600.0, "nightly.py")
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.rows("take_lock", job, attempt.attempt_id, "db", "orders", uuid4(), [])
    await queue.move_clock(120)
    return job


async def handler_that_does_not_stop(queue: Queue) -> int:
    job = await queue.enqueue()
    await queue.claim_one()
    await queue.call("cancel_job", job, "ann")
    return job


async def workers_that_claim_nothing(queue: Queue) -> int:
    job = await queue.enqueue()
    await queue.move_clock(400)
    return job


async def more_jobs_than_workers_can_do(queue: Queue) -> int:
    for _ in range(20):
        await queue.enqueue()
    await queue.move_clock(350)
    await queue.claim_one()
    for _ in range(20):
        job = await queue.enqueue()
    return job


async def job_for_a_runner_that_is_not_there(queue: Queue) -> int:
    job = await queue.enqueue(runner="gpu-9")
    await queue.move_clock(400)
    return job


async def retry_storm(queue: Queue) -> int:
    for _ in range(120):
        await queue.enqueue()
    for attempt in await queue.claim(120):
        await queue.finish(attempt, "failed", error={"type": "ConnectionError", "message": "refused"}, delay=3600.0)
    return attempt.job_id


async def kind_that_fails(queue: Queue) -> int:
    for _ in range(30):
        await queue.enqueue()
    for attempt in await queue.claim(30):
        await queue.finish(attempt, "failed_for_good", error={"type": "KeyError", "message": "'id'"})
    return attempt.job_id


async def deployment_that_has_not_ended(queue: Queue) -> None:
    await queue.call("stop_worker", queue.worker)
    await queue.register("old", kinds=["a"])
    await queue.register("new", kinds=["a", "b"])


async def args_that_only_new_workers_take(queue: Queue) -> int:
    old = {"work 0a": {"takes": {}, "extra": False}}
    new = {"work 0b": {"takes": {"path": True}, "extra": False}}
    await queue.call("declare_signatures", queue.worker, old)
    await queue.call("declare_signatures", await queue.register("new", lease_seconds=86400), new)
    job = await queue.enqueue(args={"path": "a"})
    error = {"code": "invalid_args", "message": "path: not known"}
    await queue.finish(await queue.claim_one(), "refused", error=error)
    return job


async def different_versions(queue: Queue) -> None:
    for version in ("0.1.0", "0.2.0"):
        await queue.register("w", version=version, lease_seconds=86400)


async def drained_system(queue: Queue) -> int:
    job = await queue.enqueue()
    await queue.call("drain_system", True)
    return job


async def job_without_a_row(queue: Queue) -> int:
    job = await queue.enqueue()
    await queue.sql("delete from fenceline.ready")
    return job


async def lock_of_a_job_that_has_ended(queue: Queue) -> int:
    job = await queue.finished()
    await queue.sql("insert into fenceline.resource_lock values ('default', 'table', $1)", job)
    return job


DEPTH = 'fenceline_lane_depth{lane="default"}'
PROBLEMS = (
    Problem(drained_lane, "lane_drained", "drained", 'fenceline_lane_enabled{lane="default"} 0.0'),
    Problem(lane_without_workers, "no_worker", "lane_without_workers", 'fenceline_workers{status="live"} 0.0'),
    Problem(only_a_server_is_up, "no_worker", "lane_without_workers", 'fenceline_workers{status="live"} 0.0'),
    Problem(only_workers_of_another_lane, "no_worker", "lane_without_workers", f"{DEPTH} 1.0"),
    Problem(kind_that_nobody_knows, "unknown_kind", "unknown_kind", f"{DEPTH} 1.0"),
    Problem(lane_without_slots, "lane_no_slots", "stuck_jobs", 'fenceline_lane_slots{lane="default"} 0.0'),
    Problem(lane_that_is_gone, "lane_missing", "stuck_jobs"),
    Problem(full_lane_with_a_long_holder, "lane_full", "full_lane", 'fenceline_lane_slots_free{lane="default"} 0.0'),
    Problem(rate_limit, "rate_limited", None, f"{DEPTH} 1.0"),
    Problem(key_that_is_held, "key", None, 'fenceline_jobs{status="waiting"} 1.0'),
    Problem(dependency_that_waits_itself, "dependencies", None, 'fenceline_jobs{status="waiting"} 1.0'),
    Problem(dependency_that_is_gone, "dependencies", "stuck_jobs", 'fenceline_jobs{status="waiting"} 1.0'),
    Problem(approval_that_nobody_gives, "approval", "approval", 'fenceline_jobs{status="awaiting_approval"} 1.0'),
    Problem(timer_that_nobody_looks_at, "timer_overdue", "overdue", 'fenceline_jobs{status="scheduled"} 1.0'),
    Problem(wait_that_nobody_ends, "wait_overdue", "overdue", 'fenceline_jobs{status="waiting"} 1.0'),
    Problem(schedule_that_nobody_fires, None, "overdue"),
    Problem(suspect_of_a_crash, "alone", "suspects", "fenceline_attempts_crashed_total 2.0"),
    Problem(every_worker_is_frozen, "workers_blocked", "blocked_worker", 'fenceline_workers{status="live"} 0.0'),
    Problem(frozen_worker, "worker_blocked", "blocked_worker", 'fenceline_workers{status="blocked"} 1.0'),
    Problem(dead_worker, "worker_lost", "lost_worker", 'fenceline_workers{status="lost"} 1.0'),
    Problem(lock_that_is_held_for_long, "lock", "lock", 'fenceline_lane_in_use{lane="default"} 2.0'),
    Problem(lock_that_a_program_forgot, "lock", "lock", 'fenceline_lane_in_use{lane="default"} 1.0'),
    Problem(handler_that_does_not_stop, "stopping", None, 'fenceline_lane_in_use{lane="default"} 1.0'),
    Problem(workers_that_claim_nothing, "next", "backlog", 'fenceline_lane_oldest_age_seconds{lane="default"} 400.0'),
    Problem(more_jobs_than_workers_can_do, "behind", "backlog", f"{DEPTH} 39.0"),
    Problem(job_for_a_runner_that_is_not_there, "no_addressee", "backlog", f"{DEPTH} 1.0"),
    Problem(retry_storm, "retry", "retry_storm", 'fenceline_jobs{status="scheduled"} 120.0'),
    Problem(
        kind_that_fails, "failed", "failing_kind", 'fenceline_jobs_ended_total{lane="default",status="failed"} 30.0'
    ),
    Problem(deployment_that_has_not_ended, None, "handlers_differ", 'fenceline_workers{status="live"} 2.0'),
    Problem(args_that_only_new_workers_take, "args_refused", "signatures_differ", f"{DEPTH} 1.0"),
    Problem(different_versions, None, "mixed_versions", 'fenceline_workers{status="live"} 3.0'),
    Problem(drained_system, "next", "drained", "fenceline_draining 1.0"),
    Problem(job_without_a_row, "nowhere", "stuck_jobs", f"{DEPTH} 0.0"),
    Problem(lock_of_a_job_that_has_ended, "succeeded", "lost_lock"),
)
