"""A queue as commands see it, whichever way they reach it: over SQL (`direct.py`) or over HTTP (`remote.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

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
from fenceline.model.records import AttemptRecord, JobEvent, WorkerRecord
from fenceline.model.schedule import Schedule
from fenceline.model.stats import Stats
from fenceline.model.status import Status

if TYPE_CHECKING:
    from fenceline.doctor.finding import Finding, Limits


StatsName = Literal["backlog", "active", "errors", "throughput", "slow"]
Expiry = datetime | Literal["never"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The lanes and kinds that a token is for; None: any."""

    lanes: list[str] | None = None
    kinds: list[str] | None = None


def bucket_seconds(seconds: float) -> float:
    """How long the spans of a throughput are, so that there are about 30 of them."""
    return max(1.0, seconds / 30)


class Queue(Protocol):
    """Every method raises `FencelineError` or `InvalidId` with a message for people."""

    async def enqueue(self, kind: str, args: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The id of the new (or found) job; `options` by their names in HTTP."""
        ...

    async def list_jobs(
        self, which: JobFilter, *, limit: int, cursor: str | None = None, fields: Sequence[str] = ()
    ) -> JobPage:
        """`fields`: args and result may be missing unless they are asked for."""
        ...

    async def get_job(self, job_id: str) -> JobRecord: ...

    async def explain(self, job_id: str) -> Explanation:
        """Why it is where it is."""
        ...

    async def snapshot(self, job_id: str) -> Any:
        """The configuration that it was enqueued with."""
        ...

    async def locks(self, job_id: str | None = None) -> Sequence[LockRecord]:
        """What a job, or any, holds or waits for."""
        ...

    async def steps(self, job_id: str) -> list[StepRecord]:
        """In order."""
        ...

    async def phases(self, job_id: str) -> list[PhaseRecord]:
        """In order, of all attempts."""
        ...

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

    async def run_now(self, job_id: str, *, reason: str | None) -> None: ...

    async def signal(self, job_id: str, name: str, payload: Any) -> Status:
        """The job's status afterwards."""
        ...

    async def move(self, job_id: str, lane: str, *, reason: str | None) -> None: ...

    async def delete(self, job_id: str) -> None:
        """Forget a finished job; an unfinished one is refused."""
        ...

    async def erase(self, job_id: str, *, reason: str | None) -> None:
        """Replace the args of a finished job by a marker."""
        ...

    async def stats(self, what: StatsName, *, seconds: float) -> Stats[Any]:
        """What operators ask: of the last seconds, where that matters."""
        ...

    async def lanes(self) -> list[Lane]: ...

    async def set_lane(self, name: str, changes: Mapping[str, Any]) -> Lane:
        """Change a lane, or make it."""
        ...

    async def open_lane(self, name: str, *, is_open: bool) -> Lane:
        """Resume or drain a lane that exists."""
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

    async def rekey(self) -> str:
        """The id of the job that does it."""
        ...

    async def retention(self) -> list[Retention]: ...

    async def set_retention(self, seconds: float | None, *, kind: str | None, status: str | None) -> None:
        """None goes back to what the decorator or the default says."""
        ...

    async def tenant_limits(self) -> list[TenantLimit]: ...

    async def set_tenant_limit(self, max_jobs: int | None, *, tenant: str | None) -> None:
        """None takes the limit away."""
        ...

    async def approval_by_other(self) -> bool: ...

    async def set_approval(self, *, by_other: bool) -> None: ...

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
        self, *, role: str, tenant: str | None, name: str | None, expires_at: Expiry, bound: Binding
    ) -> dict[str, Any]:
        """What is kept of it, and `token`, the secret."""
        ...

    async def tokens(self, tenant: str | None) -> list[dict[str, Any]]:
        """Newest first, the last thousand."""
        ...

    async def revoke_token(self, token_id: int) -> str | None:
        """Its name; None: not known here."""
        ...
