"""Records of attempts, events and workers, and what somebody who watches jobs receives. Frozen values, no I/O."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from fenceline.model.job import JobRecord, LogLine


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One claim of a job; without `attempt_id`, the end of a job that nobody had claimed."""

    attempt_id: str | None
    token: int | None
    number: int | None
    worker: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    final: bool
    error: dict[str, Any] | None
    actor: str | None
    metadata: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something that happened to a job: made, claimed, started, ended, or what people did to it."""

    at: datetime
    event: str
    actor: str | None
    reason: str | None
    details: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A process that claims jobs. `lease_seconds_left` is negative once others may take its jobs over.

    What only the database knows (kinds and the lease) is None where a server was asked.
    """

    id: int
    name: str
    host: str | None
    pid: int | None
    version: str | None
    runner: bool
    lanes: list[str] | None
    kinds: list[str] | None = None
    labels: dict[str, Any] | None
    running: int
    started_at: datetime
    heartbeat_at: datetime
    lease_seconds: float | None = None
    lease_seconds_left: float | None = None
    stopped_at: datetime | None = None
    blocked_seconds: float | None = None  # for how long its event loop has not turned
    blocked_by: str | None = None  # the job whose handler is on it


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """News of a job, as in the streams of the server: what `event` names is there, the rest is None.

    `status`: the job, when anything but its progress has changed. `progress`: its phase and progress. `log`: a line.
    """

    event: Literal["status", "progress", "log"]
    id: str
    job: JobRecord | None = None
    attempt: int | None = None
    phase: str | None = None
    progress: Any = None
    line: LogLine | None = None
