"""A queue as commands see it, whichever way they reach it: over SQL (`direct.py`) or over HTTP (`remote.py`)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from fenceline.cli.direct import DirectQueue
    from fenceline.cli.remote import RemoteJob, RemoteQueue
    from fenceline.client.job import Job

#: Both have the same methods, since mypy checks every use against both. They raise `FencelineError` or `InvalidId` with
#: a message for people.
Queue: TypeAlias = "DirectQueue | RemoteQueue"
QueueJob: TypeAlias = "Job[Any] | RemoteJob"


@asynccontextmanager
async def open_queue(*, dsn: str | None, url: str | None, token: str | None) -> AsyncIterator[Queue]:
    """The queue of a server, else of a database, else of the embedded database; closed at the end."""
    queue: Queue
    if url is not None:
        from fenceline.cli.remote import RemoteQueue

        queue = RemoteQueue(url, token)
    else:
        from fenceline.cli.direct import DirectQueue

        queue = DirectQueue(dsn)
    try:
        yield queue
    finally:
        await queue.close()
