"""A few connections to one database, kept open and handed out in turn.

asyncpg's own pool sends a reset statement after every use, which doubles the round trips of a single enqueue. Our
statements leave nothing behind on a connection, so this pool needs no reset.
"""

import asyncio
import contextlib
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from fenceline.database import failures

if TYPE_CHECKING:
    import asyncpg

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]

CLOSE_SECONDS = 1.0


class Pool:
    def __init__(self, connect: "Callable[[], Awaitable[Connection]]", size: int) -> None:
        self._connect = connect
        self._free = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._closed = False

    @contextlib.asynccontextmanager
    async def connection(self) -> "AsyncIterator[Connection]":
        """A connection for the block alone; closed if the block ends in the middle of a statement."""
        async with self._free:
            connection = self._take_idle() or await self._connect()
            try:
                yield connection
            except asyncio.CancelledError:
                # If merely cut off, the server would carry on with a statement that nobody waits for; closing stops it.
                with contextlib.suppress(Exception):
                    await connection.close(timeout=CLOSE_SECONDS)
                connection.terminate()
                raise
            except BaseException as error:
                if failures.needs_new_connection(error):
                    connection.terminate()
                raise
            finally:
                if self._closed:
                    connection.terminate()
                elif not connection.is_closed():
                    self._idle.append(connection)

    @property
    def is_full(self) -> bool:
        return self._free.locked()

    async def take_place(self) -> None:
        """Reserve the place of a connection that is opened elsewhere; `leave_place` frees it."""
        await self._free.acquire()
        if self._idle:
            self._idle.pop().terminate()

    def leave_place(self) -> None:
        self._free.release()

    def _take_idle(self) -> "Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed() and not _has_unread_input(connection):
                return connection
            connection.terminate()
        return None

    def retire(self) -> None:
        """As `close`, at once: nobody will use the pool any more."""
        self._closed = True
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Close idle connections; those in use are closed when they are given back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()


def _has_unread_input(connection: "Connection") -> bool:
    """Whether the server has sent something to an idle connection that the event loop has not seen yet.

    It is almost always the server closing the connection: a statement sent now would be lost, and nobody could tell
    whether it was carried out. If it was something else, this costs one connect.
    """
    transport = getattr(connection, "_transport", None)
    socket = transport and transport.get_extra_info("socket")
    if socket is None:
        return False
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))
