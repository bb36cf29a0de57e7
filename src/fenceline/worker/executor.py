"""Runs handlers: async ones on the loop, blocking ones in threads, isolated ones in processes of their own.

An async handler whose code awaits nothing cannot pause, so it runs right here without a task of its own: that is most
of the difference between 30,000 and 50,000 small jobs per second. Any other handler gets a task.

An attempt can be over before its handler is: a thread cannot be stopped, and a coroutine may ignore it. Then the
attempt ends when it should, what the handler returns later is ignored, and its place stays taken until it does return.
"""

import asyncio
import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from uuid import UUID

from fenceline.client.app import Fenceline
from fenceline.context import preparation
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.context import Context
from fenceline.context.desk import Desk
from fenceline.context.endings import ending_with
from fenceline.context.failure import describe, ending_of, has_type, timed_out
from fenceline.context.lines import current_context
from fenceline.errors import Cancelled
from fenceline.worker.board import Board
from fenceline.worker.execution import Execution
from fenceline.worker.handling import Handling
from fenceline.worker.isolation import Isolation
from fenceline.worker.plan import Plan
from fenceline.worker.settings import Counters, WorkerSettings
from fenceline.worker.threads import Threads
from fenceline.worker.tracing import all_middlewares

log = logging.getLogger("fenceline.worker")

#: The loop must breathe: claims, endings and signals wait for it.
BREATH_SECONDS = 0.004
#: How long a handler that was asked to stop may ignore it before its task is cancelled; at most half of its grace.
CANCEL_PATIENCE_SECONDS = 5.0
#: A coroutine that goes on although it was cancelled loses its attempt after so long.
IGNORED_SECONDS = 5.0


def is_ctrl_c(error: BaseException) -> bool:
    """Whether this may be a person's wish to end the program: only where the signal itself raises an exception. Worker
    processes ignore the signal, asyncio.run() cancels; there it is the handler that raised it, and would raise it again
    in the next process, and the next.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


class Executor:
    def __init__(
        self,
        app: Fenceline,
        settings: WorkerSettings,
        *,
        finish: Callable[[Ending], None],
        board: Board,
        counters: Counters,
        desk: Desk,
        app_name: str | None = None,
    ) -> None:
        self._app = app
        self._desk = desk
        self._finish = finish
        self._board = board
        self._counters = counters
        self._limits = {"loop": settings.concurrency, "thread": settings.threads, "isolated": settings.isolated}
        middlewares = all_middlewares(app)
        self._plans = {kind: Plan(handler, middlewares) for kind, handler in app.handlers.items()}
        self._waiting: dict[str, deque[Attempt]] = {mode: deque() for mode in self._limits}
        self._at_work = dict.fromkeys(self._limits, 0)  # tasks, also of attempts that are over
        self._threads = Threads(self._place_is_free)
        self._isolation = Isolation(app_name, settings, has_database=desk.has_database)
        handling = Handling(desk, self._threads, settings.threads)
        self._ways = {"loop": handling.on_loop, "thread": handling.in_thread, "isolated": self._isolation.run}
        self.running: dict[UUID, Execution] = {}
        self._news = asyncio.Event()
        self._shutting_down = False
        self.changed = asyncio.Event()  # a place became free

    @property
    def worker_id(self) -> int:
        return self._isolation.worker_id

    @worker_id.setter
    def worker_id(self, worker_id: int) -> None:
        self._isolation.worker_id = worker_id

    # What the claimer asks -------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    @property
    def idle(self) -> bool:
        return not self.running and self.waiting == 0

    async def until_idle(self) -> None:
        while not self.idle:
            self.changed.clear()
            await self.changed.wait()

    @property
    def lost_places(self) -> int:
        """Places that handlers keep although their attempts are over."""
        return self._threads.lost + sum(self._at_work.values()) - len(self.running)

    @property
    def held(self) -> list[UUID]:
        """The attempts that run or wait to."""
        return [*self.running, *(attempt.attempt_id for queue in self._waiting.values() for attempt in queue)]

    def free(self, mode: str) -> int:
        return self._limits[mode] - self._busy(mode) - len(self._waiting[mode])

    def mode_of(self, kind: str) -> str:
        return self._plans[kind].mode

    def _busy(self, mode: str) -> int:
        return self._at_work[mode] + (self._threads.lost if mode == "thread" else 0)

    def submit(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self._waiting[self._plans[attempt.kind].mode].append(attempt)
        self._news.set()

    def take_back(self) -> list[Attempt]:
        """Attempts that were claimed and not started, to be handed back."""
        attempts = [attempt for queue in self._waiting.values() for attempt in queue]
        for queue in self._waiting.values():
            queue.clear()
        return attempts

    # Running ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._start_waiting()

    async def _start_waiting(self) -> None:
        for mode in ("thread", "isolated"):
            queue = self._waiting[mode]
            while queue and self._busy(mode) < self._limits[mode]:
                self._start_task(queue.popleft())
        loop_queue = self._waiting["loop"]
        breathed = time.perf_counter()
        while loop_queue and self._at_work["loop"] < self._limits["loop"]:
            attempt = loop_queue.popleft()
            plan = self._plans[attempt.kind]
            if plan.inline and not preparation.is_needed(attempt, takes_context=plan.takes_context):
                self._run_inline(attempt, plan)
                now = time.perf_counter()
                if now - breathed > BREATH_SECONDS:
                    self.changed.set()
                    await asyncio.sleep(0)
                    breathed = time.perf_counter()
            else:
                self._start_task(attempt)
        self.changed.set()

    def _run_inline(self, attempt: Attempt, plan: Plan) -> None:
        context = Context(attempt, self._desk, self._app)
        place = self._board.note(attempt.attempt_id)
        token = current_context.set(context)
        started = time.perf_counter()
        try:
            coroutine = plan.call(attempt, context)
            try:
                coroutine.send(None)
            except StopIteration as returned:
                ending = ending_with(attempt, context, returned.value, plan.encode_result)
                ran = ending.ran_seconds = time.perf_counter() - started
                # Nothing can interrupt it, so the timeout can only be told afterwards.
                if attempt.timeout_seconds is not None and ran > attempt.timeout_seconds:
                    ending = timed_out(attempt, ran)
            else:
                coroutine.close()
                raise AssertionError(f"{attempt.kind} paused although its code awaits nothing")
        except BaseException as error:  # whatever a handler raises is its job's failure, `exit()` too
            if is_ctrl_c(error):
                raise
            ending = ending_of(attempt, error, time.perf_counter() - started)
        finally:
            current_context.reset(token)
            self._board.erase(place)
        if context.lines:
            ending.report = context.take_report()
        self._finish(ending)

    def _start_task(self, attempt: Attempt) -> None:
        plan = self._plans[attempt.kind]
        place = None if plan.mode == "isolated" else self._board.note(attempt.attempt_id)
        context = Context(attempt, self._desk, self._app)
        context.on_stale = self.abandon
        context.shutting_down = self._shutting_down
        execution = Execution(attempt, context, plan, time.perf_counter(), place)
        self.running[attempt.attempt_id] = execution
        self._at_work[plan.mode] += 1
        execution.task = asyncio.create_task(self._execute(execution), name=f"{attempt.kind} {attempt.id}")
        execution.task.add_done_callback(lambda _task: self._leave(execution))

    async def _execute(self, execution: Execution) -> None:
        attempt = execution.attempt
        run = self._ways[execution.plan.mode]
        timeout = None if execution.plan.mode == "isolated" else attempt.timeout_seconds
        limit = execution.limit = asyncio.timeout(timeout)
        try:
            async with limit:
                ending = await run(execution)
            if limit.expired():  # it went on although it was told to stop
                ending = timed_out(attempt)
        except BaseException as error:  # whatever a handler raises is its job's failure, `exit()` too
            if is_ctrl_c(error):
                raise
            ending = timed_out(attempt) if limit.expired() else self._ending_of(execution, error)
        self._end(execution, ending)

    def _leave(self, execution: Execution) -> None:
        """The task has ended, and so its place is free."""
        self._at_work[execution.plan.mode] -= 1
        if not execution.over:  # cancelled before its first step
            self._end(execution, self._ending_of(execution, asyncio.CancelledError()))
        self._place_is_free()

    def _ending_of(self, execution: Execution, error: BaseException) -> Ending:
        attempt = execution.attempt
        if isinstance(error, Cancelled | asyncio.CancelledError):
            if execution.asked:
                return ending_of(attempt, Cancelled("the job was asked to stop"))
            if execution.stopping or (execution.context.shutting_down and isinstance(error, Cancelled)):
                return execution.plan.stopped(attempt)
            if isinstance(error, asyncio.CancelledError):
                # Nobody here did that: it came out of something that the handler awaits.
                message = "the handler ended with asyncio.CancelledError although nobody had asked it to stop"
                return Ending(attempt, outcome="failed", error=describe(RuntimeError(message)))
        return ending_of(attempt, error)

    def _end(self, execution: Execution, ending: Ending) -> None:
        """End an attempt, unless that has happened already or somebody else has said how it ended."""
        if execution.over:
            log.warning("job %s: its handler has returned, long after its attempt ended", execution.attempt.id)
            return
        execution.over = True
        self.running.pop(execution.attempt.attempt_id, None)
        if execution.place is not None:
            self._board.erase(execution.place)
        context = execution.context
        if context.transaction_done is not None:
            if not ending.outcome.startswith("succeeded"):
                log.warning("job %s: its handler failed after its transaction had ended the job", context.job)
            ending = Ending(execution.attempt, outcome=context.transaction_done.outcome, is_written=True)
        if not execution.abandoned:
            ending.ran_seconds = time.perf_counter() - execution.started
            if context.has_report and not ending.is_written:
                ending.report = context.take_report()
            if execution.asked and ending.outcome == "cancelled" and has_type(ending.error, Cancelled):
                ending.error = None  # the database knows why it was asked to stop
            ending.error = context.redact(ending.error)
            self._finish(ending)
        self._place_is_free()

    def _place_is_free(self) -> None:
        self._news.set()
        self.changed.set()

    # Stopping --------------------------------------------------------------------------------------------------------

    def request_cancel(self, attempt_id: UUID, grace_seconds: float | None = None) -> None:
        """Ask a handler to stop. `grace_seconds`: what is left of its grace, once the database has told.

        An async handler that does not stop by itself is cancelled before the grace is over; threads cannot be. After
        the grace the attempt is gone, and `abandon` follows.
        """
        execution = self.running.get(attempt_id)
        if execution is None:
            self._release_waiting(attempt_id)
            return
        if not execution.asked:
            execution.asked = True
            execution.context.request_cancel()
            if execution.cell is not None:
                execution.cell.ask_to_stop()
            execution.check_at = time.monotonic()
        if grace_seconds is not None:
            execution.check_at = time.monotonic() + grace_seconds + 0.1
            if not execution.insisted:
                execution.insisted = True
                patience = min(CANCEL_PATIENCE_SECONDS, grace_seconds / 2)
                asyncio.get_running_loop().call_later(patience, self._insist, execution)

    def _release_waiting(self, attempt_id: UUID) -> None:
        """A job that was asked to stop before it started: given back, which ends it."""
        for queue in self._waiting.values():
            for attempt in queue:
                if attempt.attempt_id == attempt_id:
                    queue.remove(attempt)
                    self._finish(Ending(attempt, outcome="released"))
                    self.changed.set()
                    return

    def _insist(self, execution: Execution) -> None:
        if execution.over or execution.task is None:
            return
        if execution.plan.mode == "loop":
            execution.task.cancel()
        elif execution.cell is not None:
            execution.cell.insist()

    def abandon(self, attempt_id: UUID) -> None:
        """Stop a handler whose attempt is gone: nothing that it writes will be accepted any more."""
        execution = self.running.get(attempt_id)
        if execution is None or execution.abandoned or execution.context.is_ending:
            return
        attempt = execution.attempt
        log.warning(
            "stale_attempt: job %s is stopped, its attempt is gone", attempt.id,
            extra={"job": attempt.id, "kind": attempt.kind, "attempt": attempt.number},
        )  # fmt: skip
        self._counters.stale += 1
        execution.abandoned = True
        execution.context.request_cancel()
        if execution.task is not None:
            execution.task.cancel()

    def end_overdue(self) -> None:
        """End attempts whose coroutines go on although they were cancelled, because of a timeout or otherwise."""
        now = time.perf_counter()
        for execution in list(self.running.values()):
            timeout = execution.attempt.timeout_seconds
            if (
                execution.plan.mode == "loop"
                and timeout is not None
                and now - execution.started > timeout + IGNORED_SECONDS
            ):
                log.warning(
                    "job %s: its handler ignores that its time is over and keeps its place until it returns",
                    execution.attempt.id,
                )
                self._end(execution, timed_out(execution.attempt))

    def shut_down(self) -> None:
        """The worker is about to stop: handlers go on, but begin no further step."""
        self._shutting_down = True
        for execution in self.running.values():
            execution.context.shutting_down = True
            if execution.cell is not None:
                execution.cell.shut_down()

    def cancel_all(self) -> None:
        """The worker is to stop: ask every handler to; async ones are cancelled."""
        for execution in list(self.running.values()):
            execution.stopping = True
            execution.context.request_cancel()
            if execution.cell is not None:
                execution.cell.ask_to_stop()
            self._insist(execution)

    async def retire(self) -> None:
        """Let the processes of isolated handlers end in good order."""
        await self._isolation.retire()

    def close(self) -> None:
        self._threads.close()
        self._isolation.kill()

    async def wait_closed(self) -> None:
        await self._isolation.wait_closed()
