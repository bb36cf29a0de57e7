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
    seconds: float | None = None  # for how long, where that is known
    hurts: str | None = None  # whom


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`patience_seconds`: how long something may take or wait before it is a finding.

    What needs no patience has none: a lane without workers, a kind without handler, a lease that is over.
    """

    patience_seconds: float = 300.0
    dead_rows: int = 100_000
    notification_queue: float = 0.1  # of what the server has room for
    clock_seconds: float = 2.0
    unanswered_seconds: float = 15.0  # that a job waits although messages are sent for it
    overdue_seconds: float = 3.0  # workers and servers look twice a second
    approval_seconds: float = 3600.0
    holder_seconds: float = 60.0  # that a job keeps a slot or a lock that others wait for, at least
    slot_bytes: int = 1024**3  # of WAL
    free_share: float = 0.05  # of the disk
