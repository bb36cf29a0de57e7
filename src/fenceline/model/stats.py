"""What operators ask of a queue, as values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stats(Generic[T]):
    """`is_complete` is false if there was too much to look at all of it: then the figures are a sample."""

    items: list[T]
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    kind: str
    lane: str
    queued: int
    scheduled: int
    waiting: int
    awaiting_approval: int
    oldest_age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveJob:
    id: str
    kind: str
    lane: str
    tenant: str
    labels: dict[str, str] | None
    status: str
    attempt: int
    worker: str | None
    phase: str | None
    progress: Any
    claimed_at: datetime
    started_at: datetime | None
    active_at: datetime | None
    cancel_requested_at: datetime | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRate:
    """`error_rate` is the share of those that ended which failed or succeeded with errors."""

    kind: str
    ended: int
    succeeded: int
    succeeded_with_errors: int
    failed: int
    cancelled: int
    error_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What ended for a tenant in the span of time that begins at `at`."""

    tenant: str
    at: datetime
    ended: int
    succeeded: int
    succeeded_with_errors: int
    failed: int
    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowJob:
    id: str
    kind: str
    lane: str
    tenant: str
    status: str
    started_at: datetime
    finished_at: datetime | None
    worker: str | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """How long jobs waited before they started, in the span of time that begins at `at`."""

    at: datetime
    started: int
    p50_seconds: float
    p95_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What jobs of a kind failed with; messages that differ in numbers only are one."""

    kind: str
    type: str | None
    code: str | None
    message: str | None
    count: int
    last_job: str
    last_at: datetime
