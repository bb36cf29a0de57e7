"""Judges from outside whether a worker's event loop is blocked, and who must go when that costs a job its timeout.

The timeout of a handler lives on the loop, and so does everything else that could stop it: a busy loop in an async
handler, or a C call that keeps the GIL, is stopped by nobody inside. The child notes on its board that its loop turns,
whose handler has its turn, and when each handler's time is over.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from fenceline.engine.running_board import OVERDUE_SECONDS, Entry, RunningBoard

#: A loop that has not turned for so long is blocked: it is named.
BLOCKED_SECONDS = 3.0
#: Between two looks at a board.
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Blame:
    """Who blocked a process: those whose time is over, and those who had time left but cost others theirs."""

    timed_out: list[UUID] = field(default_factory=list)
    set_apart: list[UUID] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)


class Blockage:
    """What is known of one loop."""

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
        """Look at the board; whom to blame, once somebody's time is over and only a kill can end it."""
        now = time.monotonic()
        away, self._looked_at = now - self._looked_at, now
        pulse = self._board.pulse
        # Only what was watched counts: a process that was stopped, or a watcher that was, has proved nothing.
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
    """Whose time is over although they wait for the loop like all others is not to blame.

    A thread runs beside the loop: when its time is over it has used it, and it may be what holds the GIL.
    """
    timed_out = [entry for entry in overdue if entry.in_thread or entry.has_turn]
    set_apart = [turn] if turn is not None and turn not in timed_out else []
    if not timed_out and not set_apart:  # a task that a handler has started, and that nobody noted
        timed_out = [min(overdue, key=lambda entry: entry.deadline or 0.0)]
    return Blame(
        [entry.attempt_id for entry in timed_out],
        [entry.attempt_id for entry in set_apart],
        [entry.job_id for entry in (*timed_out, *set_apart)],
    )
