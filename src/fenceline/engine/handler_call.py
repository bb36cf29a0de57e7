"""How a handler's function is called, on the loop or in a thread, and what its value means for the attempt."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any

from fenceline.context import preparation
from fenceline.context.attempt import Ending
from fenceline.context.endings import ending_with
from fenceline.context.log_lines import current_session
from fenceline.context.sync_context import SyncContext, wait_on
from fenceline.context.transaction import Transaction
from fenceline.engine.places import Places
from fenceline.engine.running_attempt import RunningAttempt
from fenceline.engine.running_board import RunningBoard
from fenceline.model.outcome import Mode

log = logging.getLogger("fenceline.worker")


class Turns:
    """Awaits a coroutine and shows on the board when it has its turn on the event loop, so that a handler that blocks
    the loop is known. The turns of tasks that the handler starts are not shown.
    """

    __slots__ = ("_board", "_coroutine", "_running")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], running: RunningAttempt, board: RunningBoard) -> None:
        self._coroutine = coroutine
        self._running = running
        self._board = board

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, running, board = self._coroutine, self._running, self._board
        value: Any = None
        error: BaseException | None = None
        while True:
            board.enter(running.place)
            try:
                awaited = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as returned:
                return returned.value
            finally:
                board.enter(None)
            value, error = None, None
            try:
                value = yield awaited
            except BaseException as thrown:  # noqa: BLE001 - the coroutine's to deal with, GeneratorExit too
                error = thrown


class HandlerCall:
    def __init__(self, places: Places, board: RunningBoard) -> None:
        self._threads = places.threads
        self._most_threads = places.limit_of(Mode.THREAD)
        self._board = board

    async def in_turns(self, running: RunningAttempt, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a handler on the loop, for `running` or for the batch whose first job it is."""
        return await Turns(work, running, self._board)

    async def on_loop(self, running: RunningAttempt) -> Ending:
        plan, attempt, context = running.plan, running.attempt, running.context
        ended: Ending = await self.in_turns(running, self._run(running, lambda: plan.call(attempt, context)))
        return ended

    async def in_thread(self, running: RunningAttempt) -> Ending:
        plan, attempt, session = running.plan, running.attempt, running.session
        blocking = SyncContext(session, wait_on(asyncio.get_running_loop()))

        def call() -> Any:
            value = plan.call_blocking(attempt, blocking)
            if plan.has_middleware or plan.finalizer is not None:
                return value
            return ending_with(attempt, session, value, plan.encode_result)  # encoded in the thread too

        return await self._run(running, lambda: self.run_in_thread(running, call))

    async def _run(self, running: RunningAttempt, call: Callable[[], Awaitable[Any]]) -> Ending:
        plan, session = running.plan, running.session
        current_session.set(session)
        await preparation.prepare(session, plan.handler, takes_context=plan.takes_context)
        value = await plan.around(running.context, call)
        return value if isinstance(value, Ending) else await self._returned(running, value)

    async def _returned(self, running: RunningAttempt, value: Any) -> Ending:
        """A handler's value as the end of its attempt; with a finalizer, in a transaction of its own.

        Without a database here, the server that receives the ending runs the finalizer.
        """
        plan, attempt, session = running.plan, running.attempt, running.session
        if plan.finalizer is not None and session.transaction_done is None and session.api.has_database:
            transaction = Transaction(session, running.context)
            await transaction.finish_with(value, SyncContext, wait_on(asyncio.get_running_loop()))
        if session.transaction_done is not None:
            return Ending(attempt, outcome=session.transaction_done, is_written=True)
        return ending_with(attempt, session, value, plan.encode_result)

    async def run_in_thread(self, running: RunningAttempt, function: Callable[[], Any]) -> Any:
        """Run a handler in a thread, for `running` or for the batch whose first job it is."""
        carried = copy_context()
        future = self._threads.start(lambda: carried.run(function))
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._threads.lost += 1  # until it returns
                running.session.request_cancel()  # a last chance to return by itself
                log.warning(
                    "job %s: its attempt is over but its thread cannot be stopped: %s of %s threads are lost until "
                    "they return", running.attempt.id, self._threads.lost, self._most_threads,
                )  # fmt: skip
            raise
