"""Blocks that hold a named lock or wait for one, as both `ctx.lock` and `app.lock` see them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import uuid4

from fenceline.errors import InvalidOption


@dataclass(frozen=True, slots=True)
class Block:
    """One `with ctx.lock(…)` or `with app.lock(…)`; the database knows it by its owner."""

    namespace: str
    name: str
    owner: str = field(default_factory=lambda: str(uuid4()))


def named_block(namespace: str, id: object) -> Block:
    """A block of `app.lock`. Raises InvalidOption."""
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise InvalidOption(f"lock {namespace} {id!r} has no name: use a text or a whole number")
    return Block(namespace, str(id))


#: The blocks around this one. Tasks that are started inside a block inherit it, and the block cannot end before it has
#: awaited them; so these are the locks that a wait in here keeps.
_around: ContextVar[tuple[Block, ...]] = ContextVar("fenceline_locks", default=())


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


class Turns:
    """Blocks of this process that wait for their turn."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Event] = {}

    async def wait(self, owner: str, seconds: float) -> None:
        """Until it is the block's turn, or so many seconds have passed."""
        event = self._waiting[owner] = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            del self._waiting[owner]

    def hear(self, owner: str) -> None:
        """It is this block's turn."""
        event = self._waiting.get(owner)
        if event is not None:
            event.set()
