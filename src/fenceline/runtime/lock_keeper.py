"""Locks of code outside handlers: taken by the database (function take_outside_lock), kept alive here.

Each block has a lease of its own. One task renews those of all blocks of an event loop, so a block that is busy with
something else keeps its lock, and one whose process is gone loses it when the lease is over.
"""

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass

from fenceline.database import calls
from fenceline.database.call import RunCall
from fenceline.errors import MAX_SECONDS, FencelineError, InvalidOption, LockLost, LockTimeout
from fenceline.runtime.lock_block import Block, Turns

log = logging.getLogger("fenceline.locks")

#: Nobody is notified here: the line is asked about again after these, the last one repeated.
PAUSES = (0.02, 0.1, 0.25, 0.5)
#: Of its lease, after which a block is renewed: a renewal may fail twice.
RENEW_AT = 1 / 3
#: What could not be renewed now is tried again after so long.
BUSY_SECONDS = 0.2


@dataclass(slots=True)
class Lease:
    """Of one block, by the monotonic clock of this process: counted from before each renewal was asked for."""

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

    `token` is its fencing token, higher than that of every block of `app.lock` that had the lock before: give it to
    whatever can refuse an older one.
    """

    __slots__ = ("_lease", "name", "namespace", "token")

    def __init__(self, block: Block, token: int, lease: Lease) -> None:
        self.namespace = block.namespace
        self.name = block.name
        self.token = token
        self._lease = lease

    @property
    def lost(self) -> bool:
        """Whether somebody else may have the lock by now. Asks nobody: it was told so, or the lease is over."""
        return self._lease.is_over

    def raise_if_lost(self) -> None:
        """Raises LockLost. Call it before what must not happen twice."""
        if self.lost:
            raise lost_error(self)


def lost_error(lock: HeldLock) -> LockLost:
    return LockLost(
        f"lock {lock.namespace} {lock.name!r} was lost, because its lease was not renewed in time: somebody else may "
        "have had it since. Check what this block has written"
    )


def check_timeout(timeout: float | None) -> None:
    if timeout is not None and not 0 <= timeout <= MAX_SECONDS:
        raise InvalidOption(f"timeout={timeout!r} is out of range: use 0 to {MAX_SECONDS} seconds, or None")


def seconds_left(block: Block, timeout: float | None, began_at: float) -> float:
    """Until a wait is given up. Raises LockTimeout."""
    if timeout is None:
        return MAX_SECONDS
    left = began_at + timeout - time.monotonic()
    if left <= 0:
        raise LockTimeout(
            f"lock {block.namespace} {block.name!r} could not be taken within {timeout:g} s: `fenceline locks` shows "
            "who holds it and who waits"
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

    async def take(
        self, block: Block, holding: list[str], *, tenant: str, timeout: float | None, lease_seconds: float
    ) -> HeldLock:
        """Wait until the lock is held. Raises LockTimeout, LockCycle, InvalidName, InvalidOption."""
        check_timeout(timeout)
        began_at = time.monotonic()
        call = calls.locks.take_outside_lock(
            block.namespace,
            block.name,
            tenant=tenant,
            owner=block.owner,
            holding=holding,
            lease_seconds=lease_seconds,
            actor=self._actor,
        )
        tries = 0
        try:
            while True:
                lease = Lease(lease_seconds, time.monotonic())
                token = await self._run(call)
                if token is not None:
                    self._keep(block.owner, lease)
                    return HeldLock(block, token, lease)
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                await self._turns.wait(block.owner, min(pause, seconds_left(block, timeout, began_at)))
                tries += 1
        except BaseException:
            await self.release(block)  # the place in the line
            raise

    def _keep(self, owner: str, lease: Lease) -> None:
        self._leases[owner] = lease
        self._changed.set()
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._renew(), name="fenceline locks")

    async def release(self, block: Block) -> bool:
        """Whether the block's lease had not been ended. Where the database cannot be told, the lock ends with it."""
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
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()  # there may be one with a shorter lease now
            else:
                await self._renew_all()

    async def _renew_all(self) -> None:
        asked_at = time.monotonic()
        leases = dict(self._leases)
        try:
            words = await self._run(calls.locks.keep_outside_locks(list(leases)))
        except FencelineError as error:
            log.warning("the leases of %s locks were not renewed: %s", len(leases), error)
            words = dict.fromkeys(leases, "busy")
        for owner, lease in leases.items():
            match words.get(owner):
                case None:
                    lease.renewed_at = asked_at
                case "lost":
                    lease.is_ended = True
                    self._leases.pop(owner, None)
        if words:
            await asyncio.sleep(BUSY_SECONDS)
