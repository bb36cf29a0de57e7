"""What a check may say, and from where on it says it."""

from dataclasses import dataclass
from typing import Literal

#: `problem`: something is broken or will be. `notice`: worth knowing; the system is healthy with it.
Level = Literal["problem", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    check: str  # which check says it, a fixed word
    subject: str  # what it is about: a setting, lane, table, process …
    what: str
    do: str
    level: Level = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`patience_seconds`: how long something may take or wait before it is a finding."""

    patience_seconds: float = 300.0
    dead_rows: int = 100_000
    notification_queue: float = 0.1  # of what the server has room for
    clock_seconds: float = 2.0
