"""How a handler's function is called, on the loop or in a thread, and what its value means for the attempt."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any

from fenceline.context import preparation
from fenceline.context.attempt import Ending
from fenceline.context.attempt_api import AttemptApi
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
    """Awaits a coroutine and shows on the board when it has its turn on the event loop, so that a handler that does not
    give it back is known. The turns of tasks that the handler starts are not shown.
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
    def __init__(self, api: AttemptApi, places: Places, board: RunningBoard) -> None:
        self._api = api
        self._threads = places.threads
        self._most_threads = places.limit_of(Mode.THREAD)
        self._board = board

    async def in_turns(self, running: RunningAttempt, work: Coroutine[Any, Any, Any]) -> Any:
        """What a handler does on the loop; that of `running`, or of the batch whose first job it is."""
        return await Turns(work, running, self._board)

    async def on_loop(self, running: RunningAttempt) -> Ending:
        ended: Ending = await self.in_turns(running, self._on_loop(running))
        return ended

    async def _on_loop(self, running: RunningAttempt) -> Ending:
        plan, attempt, session, context = running.plan, running.attempt, running.session, running.context
        current_session.set(session)
        await preparation.prepare(session, plan.handler, takes_context=plan.takes_context)
        value = await plan.around(context, lambda: plan.call(attempt, context))
        return await self._returned(running, value)

    async def in_thread(self, running: RunningAttempt) -> Ending:
        plan, attempt, session = running.plan, running.attempt, running.session
        current_session.set(session)
        await preparation.prepare(session, plan.handler, takes_context=plan.takes_context)
        if not plan.has_middleware and plan.finalizer is None:
            # The result is encoded in the thread too.
            ended: Ending = await self._thread(
                running, lambda value: ending_with(attempt, session, value, plan.encode_result)
            )
            return ended
        value = await plan.around(running.context, lambda: self._thread(running, lambda value: value))
        return await self._returned(running, value)

    async def _returned(self, running: RunningAttempt, value: Any) -> Ending:
        """A handler's value as the end of its attempt; with a finalizer, in a transaction of its own.

        Without a database here, whoever is told the end runs the finalizer.
        """
        plan, attempt, session = running.plan, running.attempt, running.session
        if plan.finalizer is not None and session.transaction_done is None and self._api.has_database:
            transaction = Transaction(session, running.context)
            await transaction.finish_with(value, SyncContext, wait_on(asyncio.get_running_loop()))
        if session.transaction_done is not None:
            return Ending(attempt, outcome=session.transaction_done.outcome, is_written=True)
        return ending_with(attempt, session, value, plan.encode_result)

    async def _thread(self, running: RunningAttempt, finish: Callable[[Any], Any]) -> Any:
        plan, attempt = running.plan, running.attempt
        blocking = SyncContext(running.session, wait_on(asyncio.get_running_loop()))
        return await self.run_in_thread(running, lambda: finish(plan.call_blocking(attempt, blocking)))

    async def run_in_thread(self, running: RunningAttempt, function: Callable[[], Any]) -> Any:
        """What a handler does in a thread; that of `running`, or of the batch whose first job it is."""
        carried = copy_context()
        future = self._threads.start(lambda: carried.run(function))
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._threads.lost += 1  # until it returns
                running.session.request_cancel()  # its last chance to return by itself
                log.warning(
                    "job %s: its attempt is over but its thread cannot be stopped: %s of %s threads are lost until "
                    "they return", running.attempt.id, self._threads.lost, self._most_threads,
                )  # fmt: skip
            raise
