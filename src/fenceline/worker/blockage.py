"""Judges from outside whether a worker's event loop is blocked, and who is to blame when a job overruns its timeout.

A handler's timeout lives on the loop, and so does everything else that could stop it: nothing inside the process can
stop a busy loop in an async handler, or a C call that holds the GIL. The child notes on its board that its loop turns,
whose handler has its turn, and when each handler times out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from fenceline.engine.running_board import OVERDUE_SECONDS, Entry, RunningBoard

#: A loop that has not turned for this long is called blocked.
BLOCKED_SECONDS = 3.0
#: Between two looks at a board.
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Blame:
    """Who blocked a process: attempts that have timed out, and those that had time left but kept others past theirs."""

    timed_out: list[UUID] = field(default_factory=list)
    set_apart: list[UUID] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)


class Blockage:
    """What is known about one loop."""

    def __init__(self, board: RunningBoard, is_stopped: Callable[[], bool]) -> None:
        self._board = board
        self._is_stopped = is_stopped
        self._pulse = board.pulse
        self._looked_at = self._turned_at = time.monotonic()
        self.seconds = 0.0  # for how long it has not turned
        self.job_id: int | None = None  # whose handler has its turn

    @property
    def is_blocked(self) -> bool:
        return self.seconds >= BLOCKED_SECONDS

    def look(self) -> Blame | None:
        """Look at the board; returns whom to blame, once an attempt has timed out and only a kill can end it."""
        now = time.monotonic()
        away, self._looked_at = now - self._looked_at, now
        pulse = self._board.pulse
        # Only watched time counts: nothing is proved while the process, or its watcher, is stopped.
        if pulse != self._pulse or self._is_stopped() or away > BLOCKED_SECONDS:
            self._pulse, self._turned_at = pulse, now
        self.seconds = now - self._turned_at
        self.job_id = None
        if not self.is_blocked:
            return None
        entries = self._board.entries()
        turn = next((entry for entry in entries if entry.has_turn), None)
        self.job_id = None if turn is None else turn.job_id
        overdue = [e for e in entries if e.deadline is not None and now > e.deadline + OVERDUE_SECONDS]
        return _blame(turn, overdue) if overdue else None


def _blame(turn: Entry | None, overdue: list[Entry]) -> Blame:
    """An attempt that has timed out while it waited for the loop is not to blame.

    A thread runs beside the loop: if it has timed out it has used its time, and may be what holds the GIL.
    """
    timed_out = [entry for entry in overdue if entry.in_thread or entry.has_turn]
    set_apart = [turn] if turn is not None and turn not in timed_out else []
    if not timed_out and not set_apart:  # a task that a handler started is on the loop, and is not noted
        timed_out = [min(overdue, key=lambda entry: entry.deadline or 0.0)]
    return Blame(
        [entry.attempt_id for entry in timed_out],
        [entry.attempt_id for entry in set_apart],
        [entry.job_id for entry in (*timed_out, *set_apart)],
    )
