"""A queue over SQL."""

import getpass
import socket
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from fenceline.cli.queue import JobFilter
from fenceline.client.app import Fenceline
from fenceline.client.options import EnqueueOptions
from fenceline.model.job import JobPage, JobRecord, Lane, LogLine
from fenceline.model.observed import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.status import Status

# Somebody is waiting at the keyboard: a database that is away for longer is an error, not a pause.
PAUSES = (0.1, 0.3)


class DirectQueue:
    """See `Queue`. What it does is audited as `user@host`."""

    def __init__(self, dsn: str | None) -> None:
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


def actor() -> str:
    """Who is at the keyboard, for the audit."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
