"""Batches: attempts of a kind whose handler takes many jobs at a time gather, and one call runs them all.

Each stays an attempt like any other: its task waits here for the others and then for the call, so its timeout, its
cancel and its end are its own. Only first attempts share a call. A job that was tried before gets a call to itself, so
that a bad job fails the others once and not for ever; so does a suspect.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from fenceline.context import preparation
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.batch_part import BatchPart
from fenceline.context.failure import ending_of
from fenceline.context.sync_context import SyncContext, wait_on
from fenceline.engine.handler_call import HandlerCall
from fenceline.engine.handler_plan import HandlerPlan
from fenceline.engine.places import Places
from fenceline.engine.running_attempt import RunningAttempt
from fenceline.errors import Cancelled, InvalidResult, StaleAttempt, TooLarge
from fenceline.model.outcome import Mode, Outcome
from fenceline.model.worker_settings import MAX_TOGETHER

log = logging.getLogger("fenceline.worker")


def most_together(plans: Iterable[HandlerPlan], concurrency: int) -> int:
    """How many jobs of batches a process may hold: for each kind, one batch at work and one that gathers."""
    sizes = [plan.batch.size for plan in plans if plan.batch is not None]
    return min(max(concurrency, 2 * sum(sizes)), MAX_TOGETHER)


def runs_alone(attempt: Attempt) -> bool:
    """Whether it gets a call to itself: it was tried before, or may have killed a process."""
    return attempt.number > 1 or attempt.alone


@dataclass(slots=True, eq=False)
class Member:
    running: RunningAttempt
    part: BatchPart
    end: "asyncio.Future[Ending]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Gathered:
    def __init__(self, size: int) -> None:
        """`size`: how many jobs make it full."""
        self._size = size
        self.due = asyncio.Event()  # it need not wait for more jobs
        self.begun = asyncio.Event()  # no more jobs may join
        self.on_deserted: Callable[[], None] | None = None  # called when no job waits for the call any more
        self._complete = asyncio.Event()  # all that have joined are ready for the call, or have left
        self._joined = 0  # less those that have left
        self._members: list[Member] = []

    def join(self) -> None:
        self._joined += 1
        if self.is_full:
            self.due.set()

    @property
    def is_full(self) -> bool:
        return self._joined >= self._size

    def leave(self) -> None:
        self._joined -= 1
        self._check()

    async def begin(self) -> list[Member]:
        """Close the batch; returns the members that take part in the call."""
        self.begun.set()
        self._check()
        await self._complete.wait()
        self._members = [member for member in self._members if not member.end.done()]
        return self._members

    async def arrive(self, member: Member) -> Ending:
        """Wait for the call; returns how the member's job has ended."""
        self._members.append(member)
        self._check()
        try:
            return await member.end
        except asyncio.CancelledError:
            if self.on_deserted is not None and all(other.end.cancelled() for other in self._members):
                self.on_deserted()  # all were stopped, or have timed out
            raise

    def end(self, error: BaseException | None) -> None:
        """The call has returned, or raised."""
        self.on_deserted = None
        failed: Ending | None = None
        for member in self._members:
            part = member.part
            if member.end.done():
                continue
            if error is None or part.is_decided or part.session.transaction_done is not None:
                member.end.set_result(part.ending())
            elif isinstance(error, Cancelled | asyncio.CancelledError):
                member.end.set_exception(error)  # each attempt knows its own reason
            else:
                failed = failed or _failure(member, error, alone=len(self._members) == 1)
                member.end.set_result(failed._replace(attempt=member.running.attempt))

    def _check(self) -> None:
        if self.begun.is_set() and len(self._members) == self._joined:
            self._complete.set()


class Batches:
    def __init__(self, call: HandlerCall, places: Places) -> None:
        self._call = call
        self._places = places
        self._threads = asyncio.Semaphore(places.limit_of(Mode.THREAD))
        self._gathering: dict[str, Gathered] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hurried = False

    def hurry(self) -> None:
        """Stop waiting for batches to fill: the worker is about to stop, or claims no more."""
        self._hurried = True
        for batch in self._gathering.values():
            batch.due.set()

    async def run(self, running: RunningAttempt) -> Ending:
        """Run an attempt together with others of its kind."""
        batch = self._join(running)
        try:
            await batch.begun.wait()
            running.session.raise_if_cancelled()
            await running.begin()
            await preparation.prepare(running.session, running.plan.handler, takes_context=False)
            part = running.plan.part_of(running.session)
        except BaseException:
            batch.leave()
            raise
        return await batch.arrive(Member(running, part))

    def _join(self, running: RunningAttempt) -> Gathered:
        """The batch that gathers just now, or a new one."""
        kind, settings = running.attempt.kind, running.plan.batch
        assert settings is not None  # noqa: S101 - only such kinds come here
        if runs_alone(running.attempt):
            return self._begin_batch(running, size=1, wait_seconds=0.0)
        batch = self._gathering.get(kind)
        if batch is None:
            wait_seconds = 0.0 if self._hurried else settings.wait_seconds
            batch = self._gathering[kind] = self._begin_batch(running, settings.size, wait_seconds)
        else:
            batch.join()
        if batch.is_full:
            del self._gathering[kind]
        return batch

    def _begin_batch(self, first: RunningAttempt, size: int, wait_seconds: float) -> Gathered:
        batch = Gathered(size)
        batch.join()
        # Attempts that start in this turn of the loop can still join.
        loop = asyncio.get_running_loop()
        _ = loop.call_later(wait_seconds, batch.due.set) if wait_seconds else loop.call_soon(batch.due.set)
        task = asyncio.create_task(self._run_batch(batch, first), name=f"batch of {first.attempt.kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return batch

    async def _run_batch(self, batch: Gathered, first: RunningAttempt) -> None:
        plan, kind = first.plan, first.attempt.kind
        await batch.due.wait()
        place: AbstractAsyncContextManager[Any] = nullcontext() if plan.is_async else self._threads
        async with place:  # more may join while all threads are busy
            if self._gathering.get(kind) is batch:
                del self._gathering[kind]
            members = await batch.begin()
            if members:
                await self._run_members(batch, plan, members)

    async def _run_members(self, batch: Gathered, plan: HandlerPlan, members: list[Member]) -> None:
        task, lost = asyncio.current_task(), 0

        def stop() -> None:
            nonlocal lost
            lost = len(members)
            self._places.lost_together += lost
            assert task is not None  # noqa: S101 - this is one
            task.cancel()

        batch.on_deserted = stop
        error: BaseException | None = None
        try:
            await self._call_handler(plan, members)
        except BaseException as raised:  # noqa: BLE001 - whatever a handler raises is its jobs' failure, `exit()` too
            error = raised
        batch.end(error)
        self._places.lost_together -= lost

    async def _call_handler(self, plan: HandlerPlan, members: list[Member]) -> None:
        first, parts = members[0].running, [member.part for member in members]
        if plan.is_async:
            await self._call.in_turns(first, plan.around(first.context, lambda: plan.call_together(parts)))
            return
        wait = wait_on(asyncio.get_running_loop())

        def call() -> None:
            blocking = SyncContext(first.session, wait)
            plan.around_blocking(blocking, lambda: plan.call_together_blocking(parts, wait))

        await plan.around(first.context, lambda: self._call.run_in_thread(first, call))


def _failure(member: Member, error: BaseException, *, alone: bool) -> Ending:
    """How the jobs end that the handler had not decided when it raised this."""
    attempt = member.running.attempt
    if isinstance(error, StaleAttempt):
        # One of them has lost its attempt. The others have done nothing wrong.
        return Ending(attempt, outcome=Outcome.RELEASED)
    failed = ending_of(attempt, error)
    if isinstance(error, InvalidResult | TooLarge) and not alone:
        return failed._replace(outcome=Outcome.FAILED)  # one of them is to blame: each is tried alone
    return failed
