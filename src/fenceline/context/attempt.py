"""One claim of one job, as its worker holds it; what it starts with, and how it ends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import UUID

from fenceline.model.outcome import Outcome
from fenceline.model.public_id import format_id
from fenceline.model.status import Status

#: A token's high bits are the database's timeline; the low ones count the claims of the job.
CLAIMS_MASK = 0xFFFFFFFF


@dataclass(slots=True, eq=False)
class Attempt:
    """What `claim_jobs` returned for one job; `args` is JSON text until the handler needs it."""

    lane: str
    job_id: int
    attempt_id: UUID
    token: int
    number: int
    kind: str
    args: str
    tenant: str
    priority: int
    seq: int
    max_attempts: int
    timeout_seconds: float | None
    alone: bool
    details_text: str | None

    @property
    def id(self) -> str:
        return format_id(self.job_id)

    @property
    def details(self) -> Mapping[str, Any]:
        """Labels, created_by, snapshot, identity …: what a plain job does not have."""
        return {} if self.details_text is None else json.loads(self.details_text)

    def has_any(self, *names: str) -> bool:
        """Whether one of these details is there; quick where none is."""
        if self.details_text is None or not any(f'"{name}"' in self.details_text for name in names):
            return False
        return not self.details.keys().isdisjoint(names)

    @property
    def is_plain(self) -> bool:
        """Whether nothing has to happen between the claim and the handler, as with nearly every job: it is the first
        claim but not the last one allowed, and the only detail is who made the job. A quick check: False may be wrong.
        """
        text = self.details_text
        return (
            self.token & CLAIMS_MASK == 1
            and self.number < self.max_attempts
            and (text is None or (text.startswith('{"created_by": ') and '", "' not in text))
        )

    @property
    def has_past(self) -> bool:
        """Whether there may be something left from before: earlier attempts, a job that this one retries, parents."""
        return self.token & CLAIMS_MASK > 1 or self.has_any("after", "retry_of")

    @property
    def must_tell_start(self) -> bool:
        """Whether the start must be recorded before the handler runs: an attempt lost without that is refunded."""
        return self.number >= self.max_attempts or self.has_any("tell_start")

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"attempt_id": str(self.attempt_id)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Attempt":
        return cls(**{**given, "attempt_id": UUID(given["attempt_id"])})


class Request(str):
    """The job that a handler runs: its public id, with the facts of the request as attributes."""

    __slots__ = ("_attempt",)

    def __new__(cls, attempt: Attempt) -> Self:
        request = super().__new__(cls, attempt.id)
        request._attempt = attempt
        return request

    _attempt: Attempt

    @property
    def id(self) -> str:
        """The public id, as people see it."""
        return str(self)

    @property
    def kind(self) -> str:
        """The kind that it was enqueued under."""
        return self._attempt.kind

    @property
    def args(self) -> dict[str, Any]:
        """As they were enqueued."""
        args: dict[str, Any] = json.loads(self._attempt.args)
        return args

    @property
    def tenant(self) -> str:
        """The tenant it belongs to."""
        return self._attempt.tenant

    @property
    def lane(self) -> str:
        """The lane that it runs in."""
        return self._attempt.lane

    @property
    def priority(self) -> int:
        """Its priority; higher is sooner."""
        return self._attempt.priority

    @property
    def max_attempts(self) -> int:
        """How many attempts it has."""
        return self._attempt.max_attempts

    @property
    def labels(self) -> dict[str, str]:
        """Its labels; empty where it has none."""
        labels: dict[str, str] = self._attempt.details.get("labels") or {}
        return labels

    @property
    def created_by(self) -> str | None:
        """Who enqueued it."""
        return self._attempt.details.get("created_by")

    @property
    def identity(self) -> str | None:
        """Whose credentials it runs with."""
        return self._attempt.details.get("identity")

    @property
    def snapshot(self) -> Any:
        """The configuration as it was when the job was made."""
        return self._attempt.details.get("snapshot")

    @property
    def snapshot_hash(self) -> str | None:
        """The hash of its snapshot."""
        return self._attempt.details.get("snapshot_hash")

    @property
    def requires_hash(self) -> str | None:
        """The hash that its snapshot must have."""
        return self._attempt.details.get("requires_hash")

    @property
    def after(self) -> list[str]:
        """The jobs that it waited for; `ctx.parents` tells how they ended."""
        return [format_id(job_id) for job_id in self._attempt.details.get("after") or ()]

    @property
    def group(self) -> str | None:
        """The group that it belongs to."""
        return self._attempt.details.get("group")

    @property
    def key(self) -> str | None:
        """The key that it holds while it runs."""
        return self._attempt.details.get("key")

    @property
    def key_limit(self) -> int | None:
        """How many jobs with the key may run at a time."""
        return self._attempt.details.get("key_limit")

    @property
    def resource_lock(self) -> str | None:
        """The lock that it holds from the enqueue to its end."""
        return self._attempt.details.get("resource_lock")

    @property
    def dedupe_key(self) -> str | None:
        """The key by which another enqueue finds it."""
        return self._attempt.details.get("dedupe_key")

    @property
    def expires_at(self) -> datetime | None:
        """The time by which it had to start."""
        moment = self._attempt.details.get("expires_at")
        return None if moment is None else datetime.fromisoformat(moment)

    @property
    def timeout(self) -> float | None:
        """How many seconds an attempt may take."""
        return self._attempt.timeout_seconds

    @property
    def retry(self) -> dict[str, Any] | None:
        """Its own retry policy, if it was enqueued with one."""
        return self._attempt.details.get("retry")

    @property
    def retry_of(self) -> str | None:
        """The job that this one is a retry of."""
        return _public(self._attempt.details.get("retry_of"))

    @property
    def parent(self) -> str | None:
        """The job whose handler made it."""
        return _public(self._attempt.details.get("parent"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A job that this one waited for, and how it ended."""

    id: str
    kind: str | None
    status: Status | None  # None: it is not there any more
    args: dict[str, Any] | None
    labels: dict[str, str] | None
    result: Any
    error: dict[str, Any] | None
    errors: list[Any] | None


@dataclass(frozen=True, slots=True)
class Start:
    """What earlier attempts and other jobs left for this one."""

    checkpoint: Any = None
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parents: list[Parent] = field(default_factory=list)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Start":
        parents = [
            Parent(**{**parent, "status": None if parent["status"] is None else Status(parent["status"])})
            for parent in given["parents"] or ()
        ]
        return cls(given["checkpoint"], given["steps"] or {}, parents)


@dataclass(slots=True)
class Report:
    """Log lines and progress on their way to `report_attempts`."""

    lines: list[dict[str, Any]]
    progress: dict[str, Any] | None
    offset: int = 0  # how many lines of the attempt came before these


class Ending(NamedTuple):
    """How an attempt ended, on its way to `finish_attempts`. A tuple because every job has one, and a frozen dataclass
    takes half as long again to make.
    """

    attempt: Attempt
    outcome: Outcome = Outcome.SUCCEEDED
    result: str | None = None
    error: str | None = None
    errors: str | None = None
    delay: float | None = None
    ran_seconds: float | None = None
    report: "Report | None" = None  # what goes before the end: after it, it would be stale
    is_written: bool = False  # the end is in the database already, with a transaction of the handler's
    cause: BaseException | None = None  # what the handler raised, if it ran in this process
    is_loggable: bool = False  # whether collectors of exceptions may see the cause

    def to_json(self) -> dict[str, Any]:
        """How a process of its own reports the end."""
        return {name: getattr(self, name) for name in ("outcome", "result", "error", "errors", "delay", "is_written")}

    @classmethod
    def from_json(cls, attempt: Attempt, ended: Mapping[str, Any]) -> "Ending":
        return cls(attempt, **{**ended, "outcome": Outcome(ended["outcome"])})


def _public(job_id: int | None) -> str | None:
    return None if job_id is None else format_id(job_id)
