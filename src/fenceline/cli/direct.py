"""A queue over SQL."""

import getpass
import socket
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from fenceline.cli.queue import JobFilter
from fenceline.client.app import Fenceline
from fenceline.client.options import EnqueueOptions
from fenceline.client.schedules import ScheduleSettings
from fenceline.database import access_calls
from fenceline.doctor.finding import Finding, Limits
from fenceline.model.job import JobPage, JobRecord, Lane, LogLine, Retention, TenantLimit
from fenceline.model.observed import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.schedule import Schedule
from fenceline.model.secret import new_token
from fenceline.model.status import Status

# Somebody is waiting at the keyboard: a database that is away for longer is an error, not a pause.
PAUSES = (0.1, 0.3)
CONNECT_SECONDS = 10.0
MOST_TOKENS = 1000


class DirectQueue:
    """See `Queue`. What it does is audited as `user@host`."""

    def __init__(self, dsn: str | None) -> None:
        self._dsn = dsn
        self._app = Fenceline(dsn)
        self._actor = actor()

    async def __aenter__(self) -> Self:
        self._app.caller().pauses = PAUSES
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._app.close()

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        chosen: EnqueueOptions = {**options}  # type: ignore[typeddict-item]  # the database checks the names
        return (await self._app.enqueue(kind, args, **chosen)).id

    async def list_jobs(self, which: JobFilter, *, limit: int, cursor: str | None = None) -> JobPage:
        return await self._app.jobs.list(
            status=which.status or None,
            kind=which.kind or None,
            lane=which.lane or None,
            tenant=which.tenant or None,
            labels=which.labels,
            created_after=which.created_after,
            created_before=which.created_before,
            limit=limit,
            cursor=cursor,
        )

    async def get_job(self, job_id: str) -> JobRecord:
        return await self._app.jobs.get(job_id)

    async def attempts(self, job_id: str) -> list[AttemptRecord]:
        return await self._app.jobs.handle(job_id).attempts()

    async def events(self, job_id: str) -> list[JobEvent]:
        return await self._app.jobs.handle(job_id).events()

    async def logs(self, job_id: str, after: LogLine | None) -> list[LogLine]:
        return await self._app.jobs.handle(job_id).logs(after=after)

    async def cancel(self, job_id: str, *, reason: str | None, force: bool) -> Status:
        return await self._app.jobs.handle(job_id).cancel(reason, force=force, actor=self._actor)

    async def retry(self, job_id: str) -> str:
        return (await self._app.jobs.handle(job_id).retry(actor=self._actor)).id

    async def approve(self, job_id: str, *, reason: str | None) -> Status:
        return await self._app.jobs.handle(job_id).approve(reason, actor=self._actor)

    async def reject(self, job_id: str, *, reason: str | None) -> Status:
        return await self._app.jobs.handle(job_id).reject(reason, actor=self._actor)

    async def reprioritise(self, job_id: str, priority: int) -> None:
        await self._app.jobs.handle(job_id).reprioritise(priority, actor=self._actor)

    async def erase(self, job_id: str, *, reason: str | None) -> None:
        await self._app.jobs.handle(job_id).erase_args(reason, actor=self._actor)

    async def lanes(self) -> list[Lane]:
        return await self._app.lanes.list()

    async def set_lane(self, name: str, changes: Mapping[str, Any], *, create: bool) -> Lane:
        if create:
            return await self._app.lanes.create(name, actor=self._actor, **changes)
        return await self._app.lanes.set(name, actor=self._actor, **changes)

    async def lane_rates(self) -> dict[str, float]:
        return await self._app.system.lane_rates()

    async def workers(self, *, stopped: bool) -> list[WorkerRecord]:
        return await self._app.system.workers(stopped=stopped)

    async def depth(self, lane: str | None) -> int:
        return await self._app.system.depth(lane)

    async def drain(self, *, reason: str | None) -> None:
        await self._app.system.drain(reason, actor=self._actor)

    async def resume(self) -> None:
        await self._app.system.resume(actor=self._actor)

    async def sweep(self) -> int:
        return await self._app.system.sweep()

    async def prune(self, limit: int) -> int:
        return await self._app.system.prune(limit)

    async def tenant_limits(self) -> list[TenantLimit]:
        return await self._app.system.tenant_limits()

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        await self._app.system.set_tenant_limit(max_jobs, tenant=tenant, actor=self._actor)

    async def retention(self) -> list[Retention]:
        return await self._app.system.retention()

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        await self._app.system.set_retention(seconds, kind=kind, status=status, actor=self._actor)

    async def examine(self, limits: Limits) -> list[Finding]:
        import asyncpg  # noqa: PLC0415 - keeps the import of this module light

        from fenceline.database.migrate import migrate  # noqa: PLC0415 - only where it is used
        from fenceline.database.source import Source  # noqa: PLC0415 - as above
        from fenceline.doctor.examine import examine  # noqa: PLC0415 - as above

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
        chosen: ScheduleSettings = {**settings}  # type: ignore[typeddict-item]  # the database checks the names
        return await self._app.schedules.set(name, actor=self._actor, **chosen)

    async def pause_schedule(self, name: str, *, paused: bool) -> None:
        verb = self._app.schedules.pause if paused else self._app.schedules.resume
        await verb(name, actor=self._actor)

    async def run_schedule(self, name: str) -> str:
        return (await self._app.schedules.run(name, actor=self._actor)).id

    async def delete_schedule(self, name: str) -> None:
        await self._app.schedules.delete(name, actor=self._actor)

    async def create_token(
        self, *, role: str, tenant: str | None, name: str | None, expires_at: datetime | None
    ) -> dict[str, Any]:
        secret, token_hash = new_token()
        call = access_calls.create_token(
            token_hash, role=role, tenant=tenant, name=name, expires_at=expires_at, actor=self._actor
        )
        made = await self._app.caller().call(call)
        return {"token": secret, **made}

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        return await self._app.caller().call(access_calls.list_tokens(tenant=tenant, limit=MOST_TOKENS))

    async def revoke_token(self, token_id: int) -> str:
        call = access_calls.revoke_token(token_id, actor=self._actor, tenant=None)
        return str((await self._app.caller().call(call))["name"])


def actor() -> str:
    """Who is at the keyboard, for the audit."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
