"""A queue as commands see it, whichever way they reach it: over SQL (`direct.py`) or over HTTP (`remote.py`)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from fenceline.model.job import JobPage, JobRecord, Lane, LogLine, Retention, TenantLimit
from fenceline.model.observed import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.schedule import Schedule
from fenceline.model.status import Status

if TYPE_CHECKING:
    from fenceline.doctor.finding import Finding, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs: several values of one field mean any of them; labels must all match."""

    status: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    lane: tuple[str, ...] = ()
    tenant: tuple[str, ...] = ()
    labels: Mapping[str, str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return any(getattr(self, field.name) for field in fields(self))


class Queue(Protocol):
    """Every method raises `FencelineError` or `InvalidId` with a message for people."""

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The id of the new (or found) job; `options` by their names in HTTP."""
        ...

    async def list_jobs(self, which: JobFilter, *, limit: int, cursor: str | None = None) -> JobPage: ...

    async def get_job(self, job_id: str) -> JobRecord: ...

    async def attempts(self, job_id: str) -> list[AttemptRecord]: ...

    async def events(self, job_id: str) -> list[JobEvent]:
        """First to last."""
        ...

    async def logs(self, job_id: str, after: LogLine | None) -> list[LogLine]:
        """The next lines, some hundreds at most; none: there are no more now."""
        ...

    async def cancel(self, job_id: str, *, reason: str | None, force: bool) -> Status: ...

    async def retry(self, job_id: str) -> str:
        """The id of the new job."""
        ...

    async def approve(self, job_id: str, *, reason: str | None) -> Status: ...

    async def reject(self, job_id: str, *, reason: str | None) -> Status: ...

    async def reprioritise(self, job_id: str, priority: int) -> None: ...

    async def erase(self, job_id: str, *, reason: str | None) -> None:
        """Replace the args of a finished job by a marker."""
        ...

    async def lanes(self) -> list[Lane]: ...

    async def set_lane(self, name: str, changes: Mapping[str, Any], *, create: bool) -> Lane:
        """Change a lane that exists, or make a new one."""
        ...

    async def lane_rates(self) -> dict[str, float]:
        """Jobs that ended per second by lane, of late."""
        ...

    async def workers(self, *, stopped: bool) -> list[WorkerRecord]: ...

    async def depth(self, lane: str | None) -> int:
        """Jobs that a worker could start now."""
        ...

    async def drain(self, *, reason: str | None) -> None: ...

    async def resume(self) -> None: ...

    async def sweep(self) -> int:
        """How many attempts were taken back."""
        ...

    async def prune(self, limit: int) -> int:
        """How many jobs were forgotten in this step; 0: there are no more."""
        ...

    async def retention(self) -> list[Retention]: ...

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        """None goes back to what the decorator or the default says."""
        ...

    async def tenant_limits(self) -> list[TenantLimit]: ...

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        """None takes the limit away."""
        ...

    async def examine(self, limits: "Limits") -> "list[Finding]":
        """What is wrong with the database and the fleet."""
        ...

    async def schedules(self) -> list[Schedule]: ...

    async def set_schedule(self, name: str, settings: Mapping[str, Any]) -> Schedule:
        """Change a schedule, or make it; None takes a setting back."""
        ...

    async def pause_schedule(self, name: str, *, paused: bool) -> None: ...

    async def run_schedule(self, name: str) -> str:
        """The id of the new job."""
        ...

    async def delete_schedule(self, name: str) -> None: ...

    async def create_token(
        self, *, role: str, tenant: str | None, name: str | None, expires_at: datetime | None
    ) -> dict[str, Any]:
        """What is kept of it, and `token`, the secret."""
        ...

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        """Newest first, the last thousand."""
        ...

    async def revoke_token(self, token_id: int) -> str | None:
        """Its name; None: not known here."""
        ...


@asynccontextmanager
async def open_queue(*, dsn: str | None, url: str | None, token: str | None) -> AsyncIterator[Queue]:
    """The queue of a server, else of a database, else of the embedded one; closed at the end."""
    if url is not None:
        from fenceline.cli.remote import RemoteQueue  # noqa: PLC0415 - httpx is an extra

        async with RemoteQueue(url, token) as remote:
            yield remote
        return
    from fenceline.cli.direct import DirectQueue  # noqa: PLC0415 - only where it is used

    async with DirectQueue(dsn) as direct:
        yield direct
