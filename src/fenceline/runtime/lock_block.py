"""Blocks that hold a named lock or wait for one: `ctx.lock` and `app.lock`."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import uuid4

from fenceline.errors import InvalidOption
from fenceline.runtime.waiting import wait_for_event


@dataclass(frozen=True, slots=True)
class Block:
    """One `with ctx.lock(…)` or `with app.lock(…)`. The database knows it by its `owner`."""

    namespace: str
    name: str
    owner: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideBlock(Block):
    """A block of `app.lock`, which has a lease of its own."""

    tenant: str
    timeout: float | None
    lease_seconds: float


def lock_name(namespace: str, id: object) -> str:
    """The name of a lock of `app.lock`. Raises InvalidOption."""
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise InvalidOption(f"lock {namespace} {id!r} has no name: use a text or a whole number")
    return str(id)


#: The blocks around the running code: the locks that stay held while it waits for another. Tasks started inside a block
#: inherit them, and the block does not end before it has awaited its tasks.
_around: ContextVar[tuple[Block, ...]] = ContextVar("fenceline_locks", default=())


@contextmanager
def inside(block: Block) -> Iterator[None]:
    token = _around.set((*_around.get(), block))
    try:
        yield
    finally:
        _around.reset(token)


def holding() -> list[str]:
    """The owners of the blocks around the running code."""
    return [block.owner for block in _around.get()]


class Turns:
    """The blocks of this process that wait for their turn."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Event] = {}

    async def wait(self, owner: str, seconds: float) -> None:
        """Wait until it is the block's turn, at most so many seconds."""
        event = self._waiting[owner] = asyncio.Event()
        try:
            await wait_for_event(event, seconds)
        finally:
            del self._waiting[owner]

    def hear(self, owner: str) -> None:
        """It is this block's turn."""
        event = self._waiting.get(owner)
        if event is not None:
            event.set()
