"""How a handler's function is called, on the loop or in a thread, and what its value means for the attempt."""

import asyncio
import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from fenceline.context import preparation
from fenceline.context.attempt import Ending
from fenceline.context.desk import Desk
from fenceline.context.endings import ending_with
from fenceline.context.lines import current_context
from fenceline.context.sync_context import SyncContext, wait_on
from fenceline.context.transaction import Transaction
from fenceline.worker.execution import Execution
from fenceline.worker.threads import Threads

log = logging.getLogger("fenceline.worker")


class Handling:
    def __init__(self, desk: Desk, threads: Threads, most_threads: int) -> None:
        self._desk = desk
        self._threads = threads
        self._most_threads = most_threads

    async def on_loop(self, execution: Execution) -> Ending:
        plan, attempt, context = execution.plan, execution.attempt, execution.context
        current_context.set(context)
        await preparation.prepare(context, plan.handler, takes_context=plan.takes_context)

        async def handle() -> Any:
            return await plan.call(attempt, context)

        value = await (plan.around(context, handle) if plan.has_middleware else plan.call(attempt, context))
        return await self._returned(execution, value)

    async def in_thread(self, execution: Execution) -> Ending:
        plan, attempt, context = execution.plan, execution.attempt, execution.context
        current_context.set(context)
        await preparation.prepare(context, plan.handler, takes_context=plan.takes_context)
        if not plan.has_middleware and plan.finalizer is None:
            # The result is encoded in the thread too.
            ended: Ending = await self._thread(
                execution, lambda value: ending_with(attempt, context, value, plan.encode_result)
            )
            return ended
        value = await plan.around(context, lambda: self._thread(execution, lambda value: value))
        return await self._returned(execution, value)

    async def _returned(self, execution: Execution, value: Any) -> Ending:
        """A handler's value as the end of its attempt; with a finalizer, in a transaction of its own.

        Without a database here, whoever is told the end runs the finalizer.
        """
        plan, attempt, context = execution.plan, execution.attempt, execution.context
        if plan.finalizer is not None and context.transaction_done is None and self._desk.has_database:
            await self._finalize(execution, value)
        if context.transaction_done is not None:
            return Ending(attempt, outcome=context.transaction_done.outcome, is_written=True)
        return ending_with(attempt, context, value, plan.encode_result)

    async def _finalize(self, execution: Execution, value: Any) -> None:
        context = execution.context
        transaction = Transaction(context)
        if execution.plan.finalizer is not None and execution.plan.finalizer.is_async:
            async with transaction.open() as own:
                own.result = value
            return
        blocking = SyncContext(context, wait_on(asyncio.get_running_loop()))

        def finalize() -> None:
            with transaction.open_blocking(blocking) as own:
                own.result = value

        await asyncio.to_thread(finalize)

    async def _thread(self, execution: Execution, finish: Callable[[Any], Any]) -> Any:
        plan, attempt, context = execution.plan, execution.attempt, execution.context
        carried = copy_context()
        blocking = SyncContext(context, wait_on(asyncio.get_running_loop()))
        future = self._threads.start(lambda: carried.run(lambda: finish(plan.call_blocking(attempt, blocking))))
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._threads.lost += 1  # until it returns
                context.request_cancel()  # its last chance to return by itself
                log.warning(
                    "job %s: its attempt is over but its thread cannot be stopped: %s of %s threads are lost until "
                    "they return", attempt.id, self._threads.lost, self._most_threads,
                )  # fmt: skip
            raise
