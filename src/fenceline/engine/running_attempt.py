"""A handler at work, as the executor and those who watch it know it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.context import Context
from fenceline.context.failure import ending_of
from fenceline.context.session import Session
from fenceline.engine.handler_plan import HandlerPlan
from fenceline.errors import Cancelled
from fenceline.model.outcome import Mode


class OwnProcess(Protocol):
    """The process of an isolated handler, as far as it can be told something while the handler runs."""

    def tell(self, what: Literal["shutting_down", "cancel", "stop"]) -> None: ...


class IsolatedRuns(Protocol):
    """Processes for isolated handlers."""

    worker_id: int

    async def run(self, running: "RunningAttempt") -> Ending: ...

    async def retire(self) -> None:
        """Let them end in good order."""

    async def close(self) -> None:
        """Kill those that are left, until they have ended."""


@dataclass(slots=True, eq=False)
class RunningAttempt:
    attempt: Attempt
    session: Session
    context: Context  # what its handler sees of the session
    plan: HandlerPlan
    mode: Mode
    pool: str  # whose place it takes: that of its mode, or none because it is a suspect
    started: float
    place: int | None = None  # on the board; none for isolated handlers, which cannot kill this process
    tell_start: "Callable[[RunningAttempt], Awaitable[None]] | None" = None  # before the handler runs
    task: "asyncio.Task[None] | None" = None
    limit: asyncio.Timeout | None = None
    process: OwnProcess | None = None
    announced: bool = False
    check_at: float | None = None  # when to ask the database what became of the attempt
    asked: bool = False  # the job is to be cancelled
    insisted: bool = False  # and the end of its patience is set
    stopping: bool = False  # the worker is to stop
    abandoned: bool = False  # the attempt is gone
    over: bool = False  # the attempt has ended; the handler may still run

    @property
    def waits_for_others(self) -> bool:
        """Whether its batch has not begun yet."""
        return self.mode is Mode.BATCH and self.place is None

    async def begin(self) -> None:
        """The handler starts only now: a process had to be started, the database to be told, or a batch to gather."""
        if self.tell_start is not None:
            await self.tell_start(self)
        self.started = time.perf_counter()
        if self.limit is not None and self.attempt.timeout_seconds is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + self.attempt.timeout_seconds)

    def is_late(self, patience_seconds: float = 0.0) -> bool:
        """Whether its time has been over for so long."""
        timeout = self.attempt.timeout_seconds
        return timeout is not None and time.perf_counter() - self.started > timeout + patience_seconds

    def shut_down(self) -> None:
        """The worker is about to stop: the handler goes on, but begins no further step."""
        self.session.shutting_down = True
        if self.process is not None:
            self.process.tell("shutting_down")

    def ask_to_stop(self) -> None:
        self.session.request_cancel()
        if self.process is not None:
            self.process.tell("cancel")

    def ending_of(self, error: BaseException) -> Ending:
        """How the attempt ends when its handler raises this."""
        if isinstance(error, Cancelled | asyncio.CancelledError):
            if self.asked:
                return ending_of(self.attempt, Cancelled("the job was asked to stop"))
            if self.stopping or (self.session.shutting_down and isinstance(error, Cancelled)):
                return self.plan.stopped(self.attempt)
            if isinstance(error, asyncio.CancelledError):
                # Nobody here did that: it came out of something that the handler awaits.
                message = "the handler ended with asyncio.CancelledError although nobody had asked it to stop"
                return ending_of(self.attempt, RuntimeError(message))
        return ending_of(self.attempt, error)

    def insist(self) -> None:
        """An async handler is cancelled; a thread cannot be."""
        if self.over or self.task is None:
            return
        if self.mode is Mode.LOOP or self.waits_for_others or (self.mode is Mode.BATCH and self.plan.is_async):
            self.task.cancel()
        elif self.process is not None:
            self.process.tell("stop")
