"""A batch from its first job on: who has joined, who is ready for the call, and how each of them ends."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from fenceline.context.attempt import Ending
from fenceline.context.batch_part import BatchPart
from fenceline.context.failure import ending_of
from fenceline.engine.running_attempt import RunningAttempt
from fenceline.errors import Cancelled, InvalidResult, StaleAttempt, TooLarge
from fenceline.model.outcome import Outcome

log = logging.getLogger("fenceline.worker")


@dataclass(slots=True, eq=False)
class Member:
    running: RunningAttempt
    part: BatchPart
    end: "asyncio.Future[Ending]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Gathered:
    def __init__(self, size: int) -> None:
        """`size`: of how many jobs it is full."""
        self._size = size
        self.due = asyncio.Event()  # it waits for no more jobs
        self.begun = asyncio.Event()  # nobody joins any more
        self.on_deserted: Callable[[], None] = _nothing  # nobody waits for the call any more
        self._complete = asyncio.Event()  # whoever has joined is ready for the call, or has left
        self._joined = 0
        self._left = 0
        self._members: list[Member] = []

    def join(self) -> None:
        self._joined += 1
        if self.is_full:
            self.due.set()

    @property
    def is_full(self) -> bool:
        return self._joined - self._left >= self._size

    def leave(self) -> None:
        self._left += 1
        self._check()

    async def begin(self) -> list[Member]:
        """Nobody joins any more; those who take part in the call."""
        self.begun.set()
        self._check()
        await self._complete.wait()
        self._members = [member for member in self._members if not member.end.done()]
        return self._members

    async def arrive(self, member: Member) -> Ending:
        """Ready for the call; how its job has ended."""
        self._members.append(member)
        self._check()
        try:
            return await member.end
        except asyncio.CancelledError:
            if all(other.end.cancelled() for other in self._members):  # they were stopped, or their time is over
                self.on_deserted()
            raise

    def end(self, error: BaseException | None) -> None:
        """The call has returned, or raised."""
        self.on_deserted = _nothing
        failed: Ending | None = None
        for member in self._members:
            part = member.part
            if member.end.done():
                continue
            if error is None or part.is_decided or part.session.transaction_done is not None:
                member.end.set_result(part.ending())
            elif isinstance(error, Cancelled | asyncio.CancelledError):
                member.end.set_exception(error)  # why, its own attempt knows
            else:
                failed = failed or _failure(member, error, alone=len(self._members) == 1)
                member.end.set_result(failed._replace(attempt=member.running.attempt))

    def _check(self) -> None:
        if self.begun.is_set() and len(self._members) + self._left == self._joined:
            self._complete.set()


def _nothing() -> None: ...


def _failure(member: Member, error: BaseException, *, alone: bool) -> Ending:
    """How all jobs end of which the handler had not said anything when it raised this."""
    attempt = member.running.attempt
    if isinstance(error, StaleAttempt):
        # One of them has lost its claim, and its attempt is over. The others have done nothing wrong.
        return Ending(attempt, outcome=Outcome.RELEASED)
    failed = ending_of(attempt, error)
    if isinstance(error, InvalidResult | TooLarge) and not alone:
        return failed._replace(outcome=Outcome.FAILED)  # of one of them: each is tried alone
    return failed
