"""A queue over SQL."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from fenceline.cli.queue_values import Binding, Expiry, StatsName, bucket_seconds
from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.schedule_decorator import ScheduleSettings
from fenceline.database import calls
from fenceline.doctor.finding import Finding, Limits
from fenceline.model.explanation import Explanation
from fenceline.model.job import (
    JobFilter,
    JobPage,
    JobRecord,
    Lane,
    LockRecord,
    LogLine,
    PhaseRecord,
    Retention,
    StepRecord,
    TenantLimit,
)
from fenceline.model.public_id import parse_id
from fenceline.model.records import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.schedule import Schedule
from fenceline.model.secret import new_token
from fenceline.model.stats import Stats
from fenceline.model.status import Status

# Somebody is waiting at the keyboard: a database that is away for longer is an error, not a pause.
PAUSES = (0.1, 0.3)
CONNECT_SECONDS = 10.0
MAX_TOKENS = 1000


class DirectQueue:
    """What it does is audited as `user@host`."""

    def __init__(self, dsn: str | None) -> None:
        self._dsn = dsn
        self._app = Fenceline(dsn)

    async def __aenter__(self) -> Self:
        app_parts(self._app).database().pauses = PAUSES
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._app.close()

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The id of the new (or found) job; `options` by their names in HTTP."""
        chosen: EnqueueOptions = {**options}  # type: ignore[typeddict-item]  # the database checks the names
        return (await self._app.enqueue(kind, args, **chosen)).id

    async def list_jobs(
        self,
        which: JobFilter,
        *,
        limit: int,
        cursor: str | None = None,
        fields: Sequence[str] = (),  # noqa: ARG002 - all are there
    ) -> JobPage:
        place = None if cursor is None else parse_id(cursor)
        return await app_parts(self._app).database().call(calls.jobs.page_jobs(which, limit=limit, cursor=place))

    async def get_job(self, job_id: str) -> JobRecord:
        return await self._app.jobs.get(job_id)

    async def explain(self, job_id: str) -> Explanation:
        return await self._app.jobs.handle(job_id).explain()

    async def snapshot(self, job_id: str) -> Any:
        """The configuration that it was enqueued with."""
        return await self._app.jobs.handle(job_id).snapshot()

    async def locks(self, job_id: str | None = None) -> Sequence[LockRecord]:
        """What a job, or any, holds or waits for."""
        if job_id is None:
            return await self._app.system.locks()
        return await self._app.jobs.handle(job_id).locks()

    async def steps(self, job_id: str) -> list[StepRecord]:
        return await self._app.jobs.handle(job_id).steps()

    async def phases(self, job_id: str) -> list[PhaseRecord]:
        """In order, of all attempts."""
        return await self._app.jobs.handle(job_id).phases()

    async def attempts(self, job_id: str) -> list[AttemptRecord]:
        return await self._app.jobs.handle(job_id).attempts()

    async def events(self, job_id: str) -> list[JobEvent]:
        return await self._app.jobs.handle(job_id).events()

    async def logs(self, job_id: str, after: LogLine | None) -> list[LogLine]:
        """The next lines, some hundreds at most; none: there are no more now."""
        return await self._app.jobs.handle(job_id).logs(after=after)

    async def cancel(self, job_id: str, *, reason: str | None, force: bool) -> Status:
        return await self._app.jobs.handle(job_id).cancel(reason, force=force)

    async def retry(self, job_id: str) -> str:
        """The id of the new job."""
        return (await self._app.jobs.handle(job_id).retry()).id

    async def approve(self, job_id: str, *, reason: str | None) -> Status:
        return await self._app.jobs.handle(job_id).approve(reason)

    async def reject(self, job_id: str, *, reason: str | None) -> Status:
        return await self._app.jobs.handle(job_id).reject(reason)

    async def reprioritise(self, job_id: str, priority: int) -> None:
        await self._app.jobs.handle(job_id).reprioritise(priority)

    async def run_now(self, job_id: str, *, reason: str | None) -> None:
        await self._app.jobs.handle(job_id).run_now(reason)

    async def signal(self, job_id: str, name: str, payload: Any) -> Status:
        return await self._app.jobs.handle(job_id).signal(name, payload)

    async def move(self, job_id: str, lane: str, *, reason: str | None) -> None:
        await self._app.jobs.handle(job_id).move(lane, reason)

    async def delete(self, job_id: str) -> None:
        """Forget a finished job; an unfinished one is refused."""
        await self._app.jobs.handle(job_id).delete()

    async def erase(self, job_id: str, *, reason: str | None) -> None:
        """Replace the args of a finished job by a marker."""
        await self._app.jobs.handle(job_id).erase_args(reason)

    async def stats(self, what: StatsName, *, seconds: float) -> Stats[Any]:
        stats = self._app.stats
        match what:
            case "backlog":
                return await stats.backlog()
            case "active":
                return await stats.active()
            case "errors":
                return await stats.errors(seconds=seconds)
            case "throughput":
                return await stats.throughput(seconds=seconds, bucket_seconds=bucket_seconds(seconds))
            case "slow":
                return await stats.slow(seconds=seconds)

    async def lanes(self) -> list[Lane]:
        return await self._app.lanes.list()

    async def set_lane(self, name: str, changes: Mapping[str, Any]) -> Lane:
        """Change a lane, or make it."""
        return await self._app.lanes.set(name, **changes)

    async def open_lane(self, name: str, *, is_open: bool) -> Lane:
        """Resume or drain a lane that exists."""
        lanes = self._app.lanes
        return await (lanes.resume if is_open else lanes.drain)(name)

    async def lane_rates(self) -> dict[str, float]:
        """Jobs that ended per second by lane, of late."""
        return await self._app.system.lane_rates()

    async def workers(self, *, stopped: bool) -> list[WorkerRecord]:
        return await self._app.system.workers(stopped=stopped)

    async def depth(self, lane: str | None) -> int:
        return await self._app.system.depth(lane)

    async def drain(self, *, reason: str | None) -> None:
        await self._app.system.drain(reason)

    async def resume(self) -> None:
        await self._app.system.resume()

    async def rekey(self) -> str:
        return await self._app.system.rekey()

    async def sweep(self) -> int:
        return await self._app.system.sweep()

    async def prune(self, limit: int) -> int:
        """How many jobs were forgotten in this step; 0: there are no more."""
        return await self._app.system.prune(limit)

    async def tenant_limits(self) -> list[TenantLimit]:
        return await self._app.system.tenant_limits()

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        """None takes the limit away."""
        await self._app.system.set_tenant_limit(max_jobs, tenant=tenant)

    async def approval_by_other(self) -> bool:
        return await self._app.system.approval_by_other()

    async def set_approval(self, *, by_other: bool) -> None:
        await self._app.system.set_approval(by_other=by_other)

    async def retention(self) -> list[Retention]:
        return await self._app.system.retention()

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        """None goes back to what the decorator or the default says."""
        await self._app.system.set_retention(seconds, kind=kind, status=status)

    async def examine(self, limits: Limits) -> list[Finding]:
        import asyncpg

        from fenceline.database.dsn import Source
        from fenceline.database.migrate import migrate
        from fenceline.doctor.examine import examine

        source = Source(self._dsn)
        try:
            # Not by way of the client: it refuses a database whose schema does not fit, and that is for us to find.
            connection = await asyncpg.connect(await source.dsn(), timeout=CONNECT_SECONDS, statement_cache_size=0)
            try:
                if source.is_embedded:
                    await migrate(connection)
                return await examine(connection, limits)
            finally:
                await connection.close()
        finally:
            source.close()

    async def schedules(self) -> list[Schedule]:
        return await self._app.schedules.list()

    async def set_schedule(self, name: str, settings: Mapping[str, Any]) -> Schedule:
        """Change a schedule, or make it; None takes a setting back."""
        chosen: ScheduleSettings = {**settings}  # type: ignore[typeddict-item]  # the database checks the names
        return await self._app.schedules.set(name, **chosen)

    async def pause_schedule(self, name: str, *, paused: bool) -> None:
        verb = self._app.schedules.pause if paused else self._app.schedules.resume
        await verb(name)

    async def run_schedule(self, name: str) -> str:
        return (await self._app.schedules.run(name)).id

    async def delete_schedule(self, name: str) -> None:
        await self._app.schedules.delete(name)

    async def create_token(
        self, *, role: str, tenant: str | None, name: str | None, expires_at: Expiry, bound: Binding
    ) -> dict[str, Any]:
        """What is kept of it, and `token`, the secret."""
        database, actor = app_parts(self._app).database(), app_parts(self._app).actor
        secret, token_hash = new_token()
        made = await database.call(
            calls.tokens.create_token(
                token_hash, role=role, tenant=tenant, name=name, expires_at=expires_at, actor=actor
            )
        )
        if bound.lanes is not None or bound.kinds is not None:
            bind = calls.tokens.bind_token(made["id"], lanes=bound.lanes, kinds=bound.kinds, actor=actor)
            made = await database.call(bind)
        return {"token": secret, **made}

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        """Newest first, the last thousand."""
        return await app_parts(self._app).database().call(calls.tokens.list_tokens(tenant=tenant, limit=MAX_TOKENS))

    async def revoke_token(self, token_id: int) -> str:
        """Its name."""
        revoke = calls.tokens.revoke_token(token_id, actor=app_parts(self._app).actor, tenant=None)
        return str((await app_parts(self._app).database().call(revoke))["name"])
