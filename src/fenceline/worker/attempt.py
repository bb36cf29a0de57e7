"""One claim of one job, as the worker holds it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.model.public_id import format_id


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

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"attempt_id": str(self.attempt_id)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Attempt":
        return cls(**{**given, "attempt_id": UUID(given["attempt_id"])})


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
    lines: list[dict[str, Any]] | None = None  # log lines that go before the end: after it they would be stale

    def to_json(self) -> dict[str, Any]:
        """What a handler in another process says of its end."""
        return {name: getattr(self, name) for name in ("outcome", "result", "error", "errors", "delay")}
