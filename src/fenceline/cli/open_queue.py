"""The queue that a command is about, reached as its options say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fenceline.cli.queue import Queue


@asynccontextmanager
async def open_queue(*, dsn: str | None, url: str | None, token: str | None) -> AsyncIterator[Queue]:
    """The queue of a server, else of a database, else of the embedded one; closed at the end."""
    if url is not None:
        from fenceline.cli.remote import RemoteQueue

        async with RemoteQueue(url, token) as remote:
            yield remote
        return
    from fenceline.cli.direct import DirectQueue

    async with DirectQueue(dsn) as direct:
        yield direct
