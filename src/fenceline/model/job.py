"""A job as it is at one moment, and the pieces around it. Frozen values, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from fenceline.model.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One row of the view `fenceline.jobs`: everything the queue says about a job at this moment."""

    id: str
    kind: str
    status: Status
    waiting_for: str | None  # dependencies, key, signal, or a lock
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
    progress: Any
    result: Any
    error: dict[str, Any] | None
    errors: list[Any] | None
    cancel_requested_at: datetime | None
    retry_of: str | None
    parent: str | None
    delivery: str
    backend_job_id: str | None
    runner: str | dict[str, str] | None = None
    snapshot_hash: str | None = None
    requires_hash: str | None = None
    identity: str | None = None
    after: list[str] | None = None
    key: str | None = None
    key_limit: int | None = None
    resource_lock: str | None = None
    dedupe_key: str | None = None
    expires_at: datetime | None = None
    timeout: float | None = None
    group: str | None = None
    retry: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """One page of a list; `next_cursor` is None on the last one. A page may be short, or empty, before that."""

    items: list[JobRecord]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs; None: any. Several values of one field mean any of them, labels must all match."""

    statuses: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    lanes: Sequence[str] | None = None
    tenants: Sequence[str] | None = None
    labels: Mapping[str, str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    created_by: str | None = None
    parent: str | None = None  # the public id of the job whose handler made it
    group: str | None = None
    key: str | None = None
    worker: str | None = None  # that has it, or had it at its end
    phase: str | None = None
    error: str | None = None  # a text in it

    def matches(self, job: Mapping[str, Any]) -> bool:
        """Whether a job is meant, given as JSON."""
        created_at = datetime.fromisoformat(job["created_at"])
        labels = job["labels"] or {}
        return (
            (self.tenants is None or job["tenant"] in self.tenants)
            and (self.statuses is None or job["status"] in self.statuses)
            and (self.kinds is None or job["kind"] in self.kinds)
            and (self.lanes is None or job["lane"] in self.lanes)
            and all(labels.get(name) == value for name, value in (self.labels or {}).items())
            and (self.created_after is None or created_at >= self.created_after)
            and (self.created_before is None or created_at < self.created_before)
            and all(
                wanted is None or job[name] == wanted
                for name, wanted in (
                    ("created_by", self.created_by), ("parent", self.parent), ("group", self.group), ("key", self.key),
                    ("worker", self.worker), ("phase", self.phase),
                )
            )
            and (self.error is None or _has_text(job["error"], self.error))
        )  # fmt: skip

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return any(getattr(self, field.name) is not None for field in fields(self))


def _has_text(error: Mapping[str, Any] | None, text: str) -> bool:
    """Small or capital, as the database looks for it (`filter_jobs`)."""
    words = (error or {}).get
    return text.lower() in " ".join(str(word) for name in ("type", "code", "message") if (word := words(name))).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
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
    fields: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step of a job: `listed` (named up front, still to come), `failed` or `done`. `token` tells the attempt."""

    name: str
    status: Literal["listed", "failed", "done"]
    result: Any
    error: dict[str, Any] | None
    token: int | None
    ran_seconds: float | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state that a job's handler kept last; all None when there is none. `token` tells the attempt."""

    state: Any
    token: int | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """A phase of a job, with the progress and the items that it ended with, or has so far. `token` tells the attempt.

    `phase` is None for progress before the first phase of an attempt.
    """

    phase: str | None
    progress: dict[str, Any] | None
    attempt: int | None
    token: int | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """What is held, or waited for: a `lock` (`ctx.lock`, `app.lock`), a `resource_lock` or a `key`.

    By a `job`; `actor` instead: by code outside handlers. `holder` and `holder_actor` say the same of who has what is
    waited for. `since` is None for a key that is held.
    """

    tenant: str
    namespace: str | None  # of a lock
    name: str
    job: str | None
    held: bool
    since: datetime | None
    what: str = "lock"
    actor: str | None = None
    holder: str | None = None
    holder_actor: str | None = None


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
    on_stale: Literal["retry", "fail"]
    enabled: bool
    rate_per_second: float | None
    burst: int | None
    fair: bool
    ageing_seconds: int | None
    default_priority: int | None = None  # None here and below: a server, or one of version 0.1, does not say
    needs_approval: bool
    updated_at: datetime | None = None
    offline_timeout_seconds: int | None = None
    suspects_waiting: int | None = None  # jobs that shared a process with a crash, and are to run alone
    suspects_running: int | None = None
    unsent: int | None = None  # jobs that no message is under way for, where a backend delivers
    delivery: str | None = None  # who brings its jobs to workers; None: nobody has said, and workers fetch them


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
