"""What a check finds, and the limits beyond which it is a finding."""

from dataclasses import dataclass
from typing import Literal

#: `problem`: something is broken, or will be. `notice`: worth knowing, but healthy.
Level = Literal["problem", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    check: str  # a fixed word, for programs
    subject: str  # what it is about: a setting, lane, table, process …
    what: str
    do: str
    level: Level = "problem"
    seconds: float | None = None  # for how long, where that is known
    hurts: str | None = None  # whom


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """From where on something is a finding. Some things are findings at once: a lane without workers, a kind without a
    handler, a lease that is over.
    """

    patience_seconds: float = 300.0  # that something may take or wait, where nothing else is said here
    dead_rows: int = 100_000
    notification_queue: float = 0.1  # share of its room that may be used
    clock_seconds: float = 2.0
    unanswered_seconds: float = 15.0  # that a job may wait although messages are sent for it
    overdue_seconds: float = 3.0  # workers and servers look twice a second
    approval_seconds: float = 3600.0
    holder_seconds: float = 60.0  # that a job may keep a slot or a lock that others wait for
    slot_bytes: int = 1024**3  # of WAL
    free_share: float = 0.05  # of the disk that must be free
