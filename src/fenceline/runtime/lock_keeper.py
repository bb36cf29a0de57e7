"""Locks for code outside handlers (`app.lock`): the database takes them (take_outside_lock), this keeps them alive.

Each block has its own lease. One task renews the leases of all blocks of an event loop, so a busy block keeps its lock,
and a block whose process has died loses it when the lease ends.
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from fenceline.database import calls
from fenceline.database.call import RunCall
from fenceline.errors import MAX_SECONDS, FencelineError, InvalidOption, LockLost, LockTimeout
from fenceline.runtime.lock_block import Block, OutsideBlock, Turns
from fenceline.runtime.waiting import wait_for_event

log = logging.getLogger("fenceline.locks")

#: There are no notifications here: seconds until it is asked again, the last one repeated.
PAUSES = (0.02, 0.1, 0.25, 0.5)
#: The part of a lease after which it is renewed: two renewals may fail.
RENEW_AT = 1 / 3
#: Seconds until a failed renewal is tried again.
BUSY_SECONDS = 0.2


@dataclass(slots=True)
class Lease:
    """The lease of one block, by this process's monotonic clock, counted from before each renewal was sent."""

    seconds: float
    renewed_at: float
    is_ended: bool = False

    @property
    def renew_at(self) -> float:
        return self.renewed_at + self.seconds * RENEW_AT

    @property
    def is_over(self) -> bool:
        return self.is_ended or time.monotonic() >= self.renewed_at + self.seconds


class HeldLock:
    """A lock that a block holds: `async with app.lock(…) as lock`.

    `token` is its fencing token, higher than that of every earlier block of `app.lock`: pass it to whatever can refuse
    an older one.
    """

    __slots__ = ("_lease", "name", "namespace", "token")

    def __init__(self, block: Block, token: int, lease: Lease) -> None:
        self.namespace = block.namespace
        self.name = block.name
        self.token = token
        self._lease = lease

    @property
    def lost(self) -> bool:
        """Whether somebody else may have the lock by now: a renewal was refused, or the lease is over. Does no I/O."""
        return self._lease.is_over

    def raise_if_lost(self) -> None:
        """Raises LockLost. Call it before anything that must not happen twice."""
        if self.lost:
            raise lost_error(self)


def lost_error(lock: HeldLock) -> LockLost:
    return LockLost(
        f"lock {lock.namespace} {lock.name!r} was lost, because its lease was not renewed in time: somebody else may "
        "have had it since. Check what this block has written"
    )


def seconds_left(block: OutsideBlock, began_at: float) -> float:
    """Until the wait is given up. Raises LockTimeout."""
    if block.timeout is None:
        return MAX_SECONDS
    left = began_at + block.timeout - time.monotonic()
    if left <= 0:
        raise LockTimeout(
            f"lock {block.namespace} {block.name!r} could not be taken within {block.timeout:g} s: `fenceline locks` "
            "shows who holds it and who waits"
        )
    return left


class LockKeeper:
    def __init__(self, run: RunCall, actor: str) -> None:
        self._run = run
        self._actor = actor
        self._turns = Turns()
        self._leases: dict[str, Lease] = {}
        self._changed = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def take(self, block: OutsideBlock, holding: list[str]) -> HeldLock:
        """Wait until the lock is held. Raises LockTimeout, LockCycle, InvalidName, InvalidOption."""
        if block.timeout is not None and not 0 <= block.timeout <= MAX_SECONDS:
            raise InvalidOption(f"timeout={block.timeout!r} is out of range: use 0 to {MAX_SECONDS} seconds, or None")
        began_at = time.monotonic()
        call = calls.locks.take_outside_lock(
            block.namespace,
            block.name,
            tenant=block.tenant,
            owner=block.owner,
            holding=holding,
            lease_seconds=block.lease_seconds,
            actor=self._actor,
        )
        tries = 0
        try:
            while True:
                lease = Lease(block.lease_seconds, time.monotonic())
                token = await self._run(call)
                if token is not None:
                    self._keep(block.owner, lease)
                    return HeldLock(block, token, lease)
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                await self._turns.wait(block.owner, min(pause, seconds_left(block, began_at)))
                tries += 1
        except BaseException:
            await self.release(block)  # its place in the queue
            raise

    def _keep(self, owner: str, lease: Lease) -> None:
        self._leases[owner] = lease
        self._changed.set()
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._renew(), name="fenceline locks")

    async def release(self, block: Block) -> bool:
        """Returns whether the lock was still held. If the database cannot be reached, the lock ends with its lease."""
        lease = self._leases.pop(block.owner, None)
        try:
            held, following = await self._run(calls.locks.release_outside_lock(block.owner))
        except FencelineError as error:
            log.warning("lock %s %r ends with its lease only: %s", block.namespace, block.name, error)
            return lease is not None and not lease.is_over
        if following is not None:
            self._turns.hear(following)
        return held

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])

    async def _renew(self) -> None:
        while self._leases:
            self._changed.clear()
            seconds = min(lease.renew_at for lease in self._leases.values()) - time.monotonic()
            if seconds > 0:
                await wait_for_event(self._changed, seconds)  # a new block may have a shorter lease
            else:
                await self._renew_all()

    async def _renew_all(self) -> None:
        asked_at = time.monotonic()
        leases = dict(self._leases)
        try:
            answers = await self._run(calls.locks.keep_outside_locks(list(leases)))
        except FencelineError as error:
            log.warning("the leases of %s locks were not renewed: %s", len(leases), error)
            answers = dict.fromkeys(leases, "busy")
        for owner, lease in leases.items():
            match answers.get(owner):
                case None:
                    lease.renewed_at = asked_at
                case "lost":
                    lease.is_ended = True
                    self._leases.pop(owner, None)
        if answers:
            await asyncio.sleep(BUSY_SECONDS)
