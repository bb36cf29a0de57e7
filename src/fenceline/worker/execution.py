"""A handler at work, as the executor and those who watch it know it."""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fenceline.context.attempt import Attempt
from fenceline.context.context import Context
from fenceline.worker.plan import Plan

if TYPE_CHECKING:
    from fenceline.worker.isolation import Cell


@dataclass(slots=True, eq=False)
class Execution:
    attempt: Attempt
    context: Context
    plan: Plan
    started: float
    place: int | None  # on the board; none for isolated handlers, which cannot kill this process
    task: "asyncio.Task[None] | None" = None
    limit: asyncio.Timeout | None = None
    cell: "Cell | None" = None
    announced: bool = False
    check_at: float | None = None  # when to ask the database what became of the attempt
    asked: bool = False  # the job is to be cancelled
    insisted: bool = False  # and the end of its patience is set
    stopping: bool = False  # the worker is to stop
    abandoned: bool = False  # the attempt is gone
    over: bool = False  # the attempt has ended; the handler may still run

    def begin(self) -> None:
        """The handler starts only now: a process had to be started first."""
        self.started = time.perf_counter()
        if self.limit is not None and self.attempt.timeout_seconds is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + self.attempt.timeout_seconds)
