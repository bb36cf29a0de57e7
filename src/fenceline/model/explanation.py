"""Why a job is where it is. Frozen values, no I/O."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fenceline.model.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What a job waits for, or does: `code` for programs, `text` for people, `commands` to type to change it."""

    code: str
    text: str
    since: datetime | None
    until: datetime | None
    details: dict[str, Any]
    commands: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Reason):
    """The first reason, and those that would apply after it (`also`)."""

    id: str
    status: Status | None  # None: a row of Fenceline's tables is missing
    also: list[Reason] = field(default_factory=list)
