"""An attempt whose handler runs, or is about to."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, assert_never

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.context import Context
from fenceline.context.failure import ending_of
from fenceline.context.session import Session
from fenceline.engine.handler_plan import HandlerPlan
from fenceline.errors import Cancelled
from fenceline.model.outcome import Mode


class OwnProcess(Protocol):
    """The process of an isolated handler, as a running attempt sees it."""

    def tell(self, what: Literal["shutting_down", "cancel", "stop"]) -> None: ...


class IsolatedRuns(Protocol):
    """Processes for isolated handlers."""

    worker_id: int

    async def run(self, running: "RunningAttempt") -> Ending: ...

    async def retire(self) -> None:
        """Let them end in good order."""

    async def close(self) -> None:
        """Kill those that are left, and wait for their end."""


@dataclass(slots=True, eq=False)
class RunningAttempt:
    attempt: Attempt
    session: Session
    context: Context  # what its handler sees of the session
    plan: HandlerPlan
    mode: Mode
    started: float
    place: int | None = None  # on the board; isolated handlers have none, they cannot kill this process
    tell_start: "Callable[[RunningAttempt], Awaitable[None]] | None" = None  # before the handler runs
    task: "asyncio.Task[None] | None" = None
    limit: asyncio.Timeout | None = None
    process: OwnProcess | None = None
    announced: bool = False
    check_at: float | None = None  # when to ask the database what became of the attempt
    asked: bool = False  # the job is to be cancelled
    insisted: bool = False  # and it is set when its task is cancelled
    stopping: bool = False  # the worker stops now
    abandoned: bool = False  # the attempt is gone
    over: bool = False  # the attempt has ended; the handler may still run

    @property
    def waits_for_others(self) -> bool:
        """Whether its batch has not begun yet."""
        return self.mode is Mode.BATCH and self.place is None

    async def begin(self) -> None:
        """The handler starts now: its process has started, the database knows, its batch has gathered."""
        if self.tell_start is not None:
            await self.tell_start(self)
        self.started = time.perf_counter()
        if self.limit is not None and self.attempt.timeout_seconds is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + self.attempt.timeout_seconds)

    def is_late(self, patience_seconds: float = 0.0) -> bool:
        """Whether it timed out more than `patience_seconds` ago."""
        timeout = self.attempt.timeout_seconds
        return timeout is not None and time.perf_counter() - self.started > timeout + patience_seconds

    def shut_down(self) -> None:
        """The worker is about to stop: the handler goes on but begins no further step."""
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
                # We did not cancel it: the error came out of something that the handler awaits.
                message = "the handler ended with asyncio.CancelledError although nobody had asked it to stop"
                return ending_of(self.attempt, RuntimeError(message))
        return ending_of(self.attempt, error)

    def insist(self) -> None:
        """Cancel an async handler; a thread cannot be cancelled."""
        if self.over or self.task is None:
            return
        match self.mode:
            case Mode.LOOP:
                self.task.cancel()
            case Mode.BATCH:
                if self.waits_for_others or self.plan.is_async:
                    self.task.cancel()
            case Mode.ISOLATED:
                if self.process is not None:
                    self.process.tell("stop")
            case Mode.THREAD:
                pass
            case _ as unknown:
                assert_never(unknown)
