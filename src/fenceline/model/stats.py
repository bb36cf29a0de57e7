"""What operators ask of a queue, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_TIMES = frozenset({"at", "claimed_at", "started_at", "finished_at", "active_at", "cancel_requested_at"})


def _read(kind: type[T], row: Mapping[str, Any]) -> T:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # all of them are dataclasses
    return kind(**{name: _moment(row[name]) if name in _TIMES else row[name] for name in names})


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class Stats(Generic[T]):
    """`is_complete` is false when there was more than is looked at in one go: then the figures are a sample."""

    items: list[T]
    is_complete: bool

    @staticmethod
    def from_json(kind: type[T], document: Mapping[str, Any]) -> "Stats[T]":
        return Stats([_read(kind, row) for row in document["items"]], document.get("is_complete", True))


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
