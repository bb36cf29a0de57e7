"""Runs handlers: async ones on the loop, blocking ones in threads, isolated ones in processes of their own.

An async handler whose code awaits nothing cannot pause, so it runs right here without a task of its own: that is most
of the difference between 30,000 and 50,000 small jobs per second. Any other handler gets a task.

An attempt can end before its handler does: a thread cannot be stopped, and a coroutine may ignore a cancel. Then what
the handler returns later is ignored, and its place stays taken until it does return.
"""

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from typing import assert_never
from uuid import UUID

from fenceline.client.app import App
from fenceline.context import preparation
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.context import Context
from fenceline.context.endings import ending_with
from fenceline.context.failure import ending_of, has_type, timed_out
from fenceline.context.log_lines import current_session
from fenceline.context.session import Session
from fenceline.delivery.contract import Delivery
from fenceline.engine.batches import Batches, most_together, runs_alone
from fenceline.engine.handler_call import HandlerCall
from fenceline.engine.handler_plan import HandlerPlan, plans_of
from fenceline.engine.places import ALONE, Places
from fenceline.engine.running_attempt import IsolatedRuns, RunningAttempt
from fenceline.engine.running_board import OVERDUE_SECONDS, RunningBoard
from fenceline.engine.starts import Starts
from fenceline.engine.statistics import RunStatistics
from fenceline.errors import Cancelled
from fenceline.model.outcome import Mode, Outcome
from fenceline.model.worker_settings import WorkerSettings

log = logging.getLogger("fenceline.worker")

#: Modes whose handlers start later: a process may have to be started first, or a batch to gather.
NOT_AT_ONCE = (Mode.ISOLATED, Mode.BATCH)
#: How long inline handlers may keep the loop: claims, endings and signals wait for it.
BREATH_SECONDS = 0.004
#: How long a handler that was asked to stop may go on before its task is cancelled; at most half of its grace.
CANCEL_PATIENCE_SECONDS = 5.0


def _must_wait(attempt: Attempt, plan: HandlerPlan) -> bool:
    """Whether the database has to be asked or told something before the handler runs."""
    return attempt.must_tell_start or preparation.is_needed(attempt, takes_context=plan.takes_context)


def _deadline(attempt: Attempt) -> float | None:
    """When it times out, by the monotonic clock, which processes share."""
    return None if attempt.timeout_seconds is None else time.monotonic() + attempt.timeout_seconds


def is_ctrl_c(error: BaseException) -> bool:
    """Whether a person may have pressed Ctrl-C: only where the signal itself raises the exception. Worker processes
    ignore the signal and asyncio.run() cancels; there the handler raised it, and would again in every new process.
    """
    return (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


class Executor:
    def __init__(
        self,
        app: App,
        settings: WorkerSettings,
        delivery: Delivery,
        *,
        finish: Callable[[Ending], None],
        board: RunningBoard,
        statistics: RunStatistics,
        isolated: IsolatedRuns | None,
        isolates: bool,
    ) -> None:
        """`isolated`, `isolates`: as for `Engine`."""
        self._app = app
        self._api = delivery.api
        self.starts = Starts(delivery)
        self._finish = finish
        self._board = board
        self._statistics = statistics
        self._isolated = isolated
        self._plans = plans_of(app, isolates=isolates)
        modes = {kind: plan.mode for kind, plan in self._plans.items()}
        together = most_together(self._plans.values(), settings.concurrency)
        self.places = Places(settings, modes, has_isolation=isolated is not None, together=together)
        self._call = HandlerCall(self.places, board)
        self.batches = Batches(self._call, self.places)
        self._shutting_down = False

    def room_beside(self, attempt: Attempt) -> int:
        """How many more jobs the batch of an attempt takes."""
        batch = self._plans[attempt.kind].batch
        return 0 if batch is None or runs_alone(attempt) else batch.size - 1

    # Running ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await self.places.work.wait()
            self.places.work.clear()
            await self._start_waiting()

    async def _start_waiting(self) -> None:
        places = self.places
        for pool in (Mode.THREAD, Mode.ISOLATED, Mode.BATCH, ALONE):
            while (attempt := places.next(pool)) is not None:
                self._start_task(attempt)
        breathed = time.perf_counter()
        while (attempt := places.next(Mode.LOOP)) is not None:
            plan = self._plans[attempt.kind]
            if plan.inline and (attempt.is_plain or not _must_wait(attempt, plan)):
                self._run_inline(attempt, plan)
                now = time.perf_counter()
                if now - breathed > BREATH_SECONDS:
                    self._board.enter(None)
                    places.changed.set()
                    await asyncio.sleep(0)
                    breathed = time.perf_counter()
            else:
                self._start_task(attempt)
        self._board.enter(None)
        places.changed.set()

    def _run_inline(self, attempt: Attempt, plan: HandlerPlan) -> None:
        session = Session(attempt, self._api, self._app)
        place = self._board.note(attempt.attempt_id, attempt.job_id, _deadline(attempt))
        self._board.enter(place)
        token = current_session.set(session)
        started = time.perf_counter()
        try:
            coroutine = plan.call(attempt, Context(session))
            try:
                coroutine.send(None)
            except StopIteration as returned:
                ending = ending_with(attempt, session, returned.value, plan.encode_result, started)
                # Nothing can interrupt it, so the timeout can only be checked afterwards.
                if attempt.timeout_seconds is not None and (ending.ran_seconds or 0.0) > attempt.timeout_seconds:
                    ending = timed_out(attempt, ending.ran_seconds)
            else:
                coroutine.close()
                raise AssertionError(f"{attempt.kind} paused although its code awaits nothing")
        except BaseException as error:  # whatever a handler raises is its job's failure, `exit()` too
            if is_ctrl_c(error):
                raise
            ending = ending_of(attempt, error, time.perf_counter() - started)
        finally:
            current_session.reset(token)
            self._board.erase(place)
        if session.lines:
            ending = ending._replace(report=session.take_report())
        self._finish(ending)

    def _start_task(self, attempt: Attempt) -> None:
        plan = self._plans[attempt.kind]
        mode = Mode.ISOLATED if attempt.alone and self.places.has_isolation else plan.mode
        if attempt.alone:
            log.warning(
                "job %s (%s) shared a process with a crash: it runs %s", attempt.id, attempt.kind,
                "in a process of its own" if mode is Mode.ISOLATED else "in this process",
                extra={"job": attempt.id, "kind": attempt.kind},
            )  # fmt: skip
        session = Session(attempt, self._api, self._app)
        session.on_stale = self.abandon
        session.shutting_down = self._shutting_down
        running = RunningAttempt(attempt, session, Context(session), plan, mode, time.perf_counter())
        if attempt.must_tell_start or mode is Mode.BATCH:
            running.tell_start = self._tell_start
        else:
            self._note(running)
        self.places.enter(running)
        running.task = asyncio.create_task(self._execute(running), name=f"{attempt.kind} {attempt.id}")
        running.task.add_done_callback(lambda _task: self._leave(running))

    async def _execute(self, running: RunningAttempt) -> None:
        attempt = running.attempt
        limit = running.limit = asyncio.timeout(None)
        try:
            async with limit:
                if running.mode not in NOT_AT_ONCE:
                    await running.begin()
                ending = await self._call_handler(running)
            if limit.expired() or (running.plan.inline and running.is_late()):
                ending = timed_out(attempt)  # it ignored the cancel, or could not be cancelled
        except BaseException as error:  # whatever a handler raises is its job's failure, `exit()` too
            if is_ctrl_c(error):
                raise
            ending = timed_out(attempt) if limit.expired() else running.ending_of(error)
        self._end(running, ending)

    def _call_handler(self, running: RunningAttempt) -> Awaitable[Ending]:
        match running.mode:
            case Mode.LOOP:
                return self._call.on_loop(running)
            case Mode.THREAD:
                return self._call.in_thread(running)
            case Mode.BATCH:
                return self.batches.run(running)
            case Mode.ISOLATED:
                assert self._isolated is not None  # noqa: S101 - the engine does not register without, see `register`
                return self._isolated.run(running)
            case _ as unknown:
                assert_never(unknown)

    async def _tell_start(self, running: RunningAttempt) -> None:
        """From here on the attempt counts, and its handler is one that may kill the process."""
        if running.attempt.must_tell_start and not await self.starts.report(running.attempt):
            self.abandon(running.attempt.attempt_id)
            raise asyncio.CancelledError
        self._note(running)

    def _note(self, running: RunningAttempt) -> None:
        """Show on the board that the handler runs. Isolated ones do not run in this process."""
        if running.mode is not Mode.ISOLATED:
            attempt = running.attempt
            running.place = self._board.note(
                attempt.attempt_id, attempt.job_id, _deadline(attempt), in_thread=not running.plan.is_async
            )

    def _leave(self, running: RunningAttempt) -> None:
        if not running.over:  # cancelled before its first step
            self._end(running, running.ending_of(asyncio.CancelledError()))
        self.places.leave(running)

    def _end(self, running: RunningAttempt, ending: Ending) -> None:
        """End an attempt, unless it is over, or its transaction has already said how it ended."""
        if running.over:
            log.warning("job %s: its handler has returned, long after its attempt ended", running.attempt.id)
            return
        running.over = True
        self.places.running.pop(running.attempt.attempt_id, None)
        if running.place is not None:
            self._board.erase(running.place)
            running.place = None
        session = running.session
        if session.transaction_done is not None:
            done = session.transaction_done
            if not ending.outcome.is_success and ending.outcome is not done:
                log.warning("job %s: its handler failed after its transaction had ended the job", session.attempt.id)
            if done.is_success:
                ending = Ending(running.attempt, outcome=done, is_written=True)
            else:  # a job of a batch: it keeps its error
                ending = ending._replace(outcome=done, is_written=True)
        if not running.abandoned:
            was_asked = running.asked and ending.outcome is Outcome.CANCELLED and has_type(ending.error, Cancelled)
            error = None if was_asked else session.redact(ending.error)  # the database knows the reason
            report = session.take_report() if session.has_report and not ending.is_written else ending.report
            ran_seconds = time.perf_counter() - running.started
            self._finish(ending._replace(error=error, report=report, ran_seconds=ran_seconds))
        self.places.note_free()

    # Stopping --------------------------------------------------------------------------------------------------------

    def request_cancel(self, attempt_id: UUID, grace_seconds: float | None = None) -> None:
        """Ask a handler to stop. `grace_seconds`: what is left of its grace, where the database has said so.

        An async handler that does not stop by itself is cancelled before the grace is over; a thread cannot be. After
        the grace the attempt is gone, and `abandon` follows.
        """
        running = self.places.running.get(attempt_id)
        if running is None:
            for attempt in self.places.take_back(attempt_id):  # it has not started: giving it back cancels it
                self._finish(Ending(attempt, outcome=Outcome.RELEASED))
                self.places.changed.set()
            return
        if not running.asked:
            running.asked = True
            running.ask_to_stop()
            running.check_at = time.monotonic()
        if grace_seconds is not None:
            running.check_at = time.monotonic() + grace_seconds + 0.1
            if not running.insisted:
                running.insisted = True
                patience = min(CANCEL_PATIENCE_SECONDS, grace_seconds / 2)
                asyncio.get_running_loop().call_later(patience, running.insist)

    def abandon(self, attempt_id: UUID) -> None:
        """Stop a handler whose attempt is gone: nothing it writes will be accepted any more."""
        running = self.places.running.get(attempt_id)
        if running is None or running.abandoned or running.session.is_ending:
            return
        attempt = running.attempt
        log.warning(
            "stale_attempt: job %s is stopped, its attempt is gone", attempt.id,
            extra={"job": attempt.id, "kind": attempt.kind, "attempt": attempt.number},
        )  # fmt: skip
        self._statistics.stale += 1
        running.abandoned = True
        running.session.request_cancel()
        if running.task is not None:
            running.task.cancel()

    def end_overdue(self) -> None:
        """End attempts whose coroutines go on long after their timeout."""
        for running in list(self.places.running.values()):
            if running.mode is Mode.LOOP and running.is_late(OVERDUE_SECONDS):
                log.warning(
                    "job %s: its handler ignores that its time is over and keeps its place until it returns",
                    running.attempt.id,
                )
                self._end(running, timed_out(running.attempt))

    def shut_down(self) -> None:
        """The worker is about to stop: handlers go on but begin no further step, batches wait for no more jobs."""
        self._shutting_down = True
        self.batches.hurry()
        for running in self.places.running.values():
            running.shut_down()

    def cancel_all(self) -> None:
        """The worker stops now: ask every handler to stop, and cancel the async ones."""
        for running in list(self.places.running.values()):
            running.stopping = True
            running.ask_to_stop()
            running.insist()

    async def close(self) -> None:
        """Returns when the processes of isolated handlers have ended."""
        self.places.threads.close()
        if self._isolated is not None:
            await self._isolated.close()
