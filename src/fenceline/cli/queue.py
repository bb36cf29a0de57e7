"""A queue as commands see it, whichever way they reach it: over SQL (`direct.py`) or over HTTP (`remote.py`)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fenceline.cli.direct import DirectQueue
    from fenceline.cli.remote import RemoteQueue

#: Both have the same methods: mypy holds every use to both. Each raises `FencelineError` or `InvalidId` with a message
#: for people.
Queue: TypeAlias = "DirectQueue | RemoteQueue"


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
