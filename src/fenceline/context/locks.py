"""`ctx.lock`: a lock that waits, and that belongs to the attempt. The database decides (function take_lock)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from fenceline.context.context import Context


@dataclass(frozen=True, slots=True)
class Block:
    """One `with ctx.lock(…)`; the database knows it by its owner."""

    namespace: str
    name: str
    owner: str = field(default_factory=lambda: str(uuid4()))


#: The blocks around this one. Tasks that are started inside a block inherit it, and the block cannot end before it has
#: awaited them; so these are the locks that a wait in here keeps.
_around: ContextVar[tuple[Block, ...]] = ContextVar("fenceline_locks", default=())

#: A notification can be missed; then it is asked again after these, the last one repeated.
PAUSES = (0.02, 0.1, 0.5, 1.0)


@contextmanager
def inside(block: Block) -> Iterator[None]:
    token = _around.set((*_around.get(), block))
    try:
        yield
    finally:
        _around.reset(token)


def holding() -> list[str]:
    """The owners of the blocks around here."""
    return [block.owner for block in _around.get()]


async def take(context: "Context", block: Block, holding: list[str]) -> None:
    """Wait until the lock is held. Raises LockCycle, InvalidName."""
    values = {"namespace": block.namespace, "name": block.name, "owner": block.owner, "holding": holding}
    tries = 0
    while not await context.ask("take_lock", values, starts_work=True):
        await context.desk.woken(block.owner, PAUSES[min(tries, len(PAUSES) - 1)])
        tries += 1


@asynccontextmanager
async def hold(context: "Context", namespace: str, name: str) -> AsyncIterator[None]:
    block = Block(namespace, name)
    try:
        await take(context, block, holding())
        with inside(block):
            yield
    finally:
        # Also when the attempt is gone or the wait was given up: the next in line need not wait for that to be noticed.
        await context.release(block.owner)
