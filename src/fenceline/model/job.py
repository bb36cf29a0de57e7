"""A job as it is at one moment, and the pieces around it. Frozen values, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from fenceline.model.status import Status

_TIMES = ("created_at", "run_at", "claimed_at", "started_at", "finished_at", "cancel_requested_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One row of the view `fenceline.jobs`: everything the queue says about a job at this moment."""

    id: str
    kind: str
    status: Status
    waiting_for: str | None
    lane: str
    priority: int
    tenant: str
    args: dict[str, Any]
    labels: dict[str, str] | None
    attempt: int
    max_attempts: int
    created_at: datetime
    created_by: str | None
    run_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    phase: str | None
    progress: dict[str, Any] | None
    result: Any
    error: dict[str, Any] | None
    errors: list[Any] | None
    cancel_requested_at: datetime | None
    retry_of: str | None
    parent: str | None
    delivery: str
    backend_job_id: str | None

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        values = dict(row)
        for name in _TIMES:
            if values[name] is not None:
                values[name] = datetime.fromisoformat(values[name])
        values["status"] = Status(values["status"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """One page of a list; `next_cursor` is None on the last one. A page may be short, or empty, before that."""

    items: list[JobRecord]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended."""

    status: Status
    result: Any
    error: dict[str, Any] | None
    errors: list[Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line that a handler logged; `token` tells the attempt, `line` its place in it."""

    token: int
    line: int
    at: datetime
    level: str
    message: str
    fields: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step of a job: `listed` (named up front, still to come), `failed` or `done`. `token` tells the attempt."""

    name: str
    status: str
    result: Any
    error: dict[str, Any] | None
    token: int | None
    ran_seconds: float | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """A lock that a job holds, or waits for."""

    tenant: str
    namespace: str
    name: str
    job: str
    held: bool
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Phase and progress that a handler last reported."""

    phase: str | None
    progress: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A budget of slots with the kinds that run in it, and what is measured of it."""

    name: str
    kinds: list[str]
    slots: int | None
    in_use: int
    depth: int
    oldest_age_seconds: float | None
    poll_interval_ms: int
    stale_timeout_seconds: int | None
    on_stale: str
    enabled: bool
    rate_per_second: float | None
    burst: int | None
    fair: bool
    ageing_seconds: int | None
    default_priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimit:
    """How many unfinished jobs a tenant may have (None: any number), and has; without a tenant: the default."""

    tenant: str | None
    max_jobs: int | None
    jobs: int | None  # of the last count, about a second ago


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished jobs are kept; without a kind: the default."""

    kind: str | None
    status: str | None
    seconds: float
    said_by: str  # operator, decorator or default
