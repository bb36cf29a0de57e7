"""`ctx.lock`: a lock that waits, and that belongs to the attempt. The database decides (function take_lock)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fenceline.runtime.lock_block import Block, holding, inside

if TYPE_CHECKING:
    from fenceline.context.session import Session


#: A notification can be missed, so the lock is tried again after these pauses; the last one repeats.
PAUSES = (0.02, 0.1, 0.5, 1.0)


async def take(session: "Session", block: Block, holding: list[str]) -> None:
    """Wait until the lock is held. Raises LockCycle, InvalidName."""
    values = {"namespace": block.namespace, "name": block.name, "owner": block.owner, "holding": holding}
    tries = 0
    while not await session.execute("take_lock", values, starts_work=True):
        await session.api.wait_for_turn(block.owner, PAUSES[min(tries, len(PAUSES) - 1)])
        tries += 1


@asynccontextmanager
async def hold(session: "Session", namespace: str, name: str) -> AsyncIterator[None]:
    block = Block(namespace, name)
    try:
        await take(session, block, holding())
        with inside(block):
            yield
    finally:
        # Also if the attempt is gone or the wait was abandoned, so that the next in line need not wait for the sweep.
        await session.release_lock(block.owner)
