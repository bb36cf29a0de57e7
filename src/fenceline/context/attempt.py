"""One claim of one job, as whoever runs it holds it; what it starts with, and how it ends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

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
    more: str | None

    @property
    def id(self) -> str:
        return format_id(self.job_id)

    @property
    def details(self) -> Mapping[str, Any]:
        """labels, created_by, snapshot, identity …: what a plain job does not have."""
        return {} if self.more is None else json.loads(self.more)

    @property
    def has_past(self) -> bool:
        """Whether there may be something to start with: earlier attempts, a job that this one retries, parents."""
        if self.token & CLAIMS_MASK > 1:
            return True
        return self.more is not None and not self.details.keys().isdisjoint({"after", "retry_of"})

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"attempt_id": str(self.attempt_id)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Attempt":
        return cls(**{**given, "attempt_id": UUID(given["attempt_id"])})


class Request(str):
    """What a handler runs for: a job's public id, with the facts of the request as attributes."""

    __slots__ = ("_attempt",)

    def __new__(cls, attempt: Attempt) -> Self:
        request = super().__new__(cls, attempt.id)
        request._attempt = attempt
        return request

    _attempt: Attempt

    @property
    def id(self) -> str:
        return str(self)

    @property
    def kind(self) -> str:
        return self._attempt.kind

    @property
    def args(self) -> dict[str, Any]:
        """As they were enqueued."""
        args: dict[str, Any] = json.loads(self._attempt.args)
        return args

    @property
    def tenant(self) -> str:
        return self._attempt.tenant

    @property
    def lane(self) -> str:
        return self._attempt.lane

    @property
    def priority(self) -> int:
        return self._attempt.priority

    @property
    def max_attempts(self) -> int:
        return self._attempt.max_attempts

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self._attempt.details.get("labels") or {}
        return labels

    @property
    def created_by(self) -> str | None:
        return self._attempt.details.get("created_by")

    @property
    def identity(self) -> str | None:
        return self._attempt.details.get("identity")

    @property
    def snapshot(self) -> Any:
        """The configuration as it was when the job was made."""
        return self._attempt.details.get("snapshot")

    @property
    def retry_of(self) -> str | None:
        return _public(self._attempt.details.get("retry_of"))

    @property
    def parent(self) -> str | None:
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


@dataclass(slots=True, eq=False)
class Ending:
    """How an attempt ended, on its way to `finish_attempts`."""

    attempt: Attempt
    outcome: str = "succeeded"
    result: str | None = None
    error: str | None = None
    errors: str | None = None
    delay: float | None = None
    ran_seconds: float | None = None
    report: "Report | None" = None  # what goes before the end: after it, it would be stale
    is_written: bool = False  # the end is in the database already, with a transaction of the handler's

    def to_json(self) -> dict[str, Any]:
        """What a handler in another process says of its end."""
        return {name: getattr(self, name) for name in ("outcome", "result", "error", "errors", "delay", "is_written")}


def _public(job_id: int | None) -> str | None:
    return None if job_id is None else format_id(job_id)
