"""A queue as commands see it, whichever way they reach it: over SQL (`direct.py`) or over HTTP (`remote.py`)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from fenceline.cli.direct import DirectQueue
    from fenceline.cli.remote import RemoteQueue

#: Both have the same methods: mypy holds every use to both. Each raises `FencelineError` or `InvalidId` with a message
#: for people.
Queue: TypeAlias = "DirectQueue | RemoteQueue"

StatsName = Literal["backlog", "active", "errors", "throughput", "slow"]
Expiry = datetime | Literal["never"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The lanes and kinds that a token is for; None: any."""

    lanes: list[str] | None = None
    kinds: list[str] | None = None


def bucket_seconds(seconds: float) -> float:
    """How long the spans of a throughput are, so that there are about 30 of them."""
    return max(1.0, seconds / 30)


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
