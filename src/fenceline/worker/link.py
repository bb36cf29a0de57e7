"""The talk between a worker process and whoever keeps its lease: JSON lines over a socket pair.

To the worker: {"renewed": monotonic time}, {"cancel": [attempt ids]}, {"lost": true}, {"stop": true}, {"hurry": true}.
To the keeper: {"registered": worker id, "fail_kinds": […]}, {"counts": …} (for metrics), {"bye": exit code}. The end of
the stream means that the other side has died.
"""

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Of one message: args and results cross to isolated handlers as one each, and a list of cancelled attempts has no end
#: but the worker's concurrency.
MOST_BYTES = 2**28


class Link:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> "Link":
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end, limit=MOST_BYTES))

    @classmethod
    async def from_descriptor(cls, descriptor: int) -> "Link":
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)  # a process that a handler starts must not keep the talk open after our end
        return await cls.open(end)

    def send(self, **message: Any) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the other side is gone."""
        try:
            line = await self._reader.readline()
        except ConnectionError:
            return None
        if not line.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self._writer.close()


async def start_linked(
    module: str,
    arguments: Callable[[int], Sequence[object]],
    *,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
) -> tuple[Link, Process]:
    """Start `python -m module` with the other end of a link, whose descriptor its arguments name; it inherits the
    descriptors, too.

    In a session of its own: Ctrl-C in a terminal reaches whoever starts it alone, and what it starts in turn can be
    killed with it.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *map(str, arguments(theirs.fileno())),
                pass_fds=(theirs.fileno(), *descriptors),
                env=None if environment is None else {**os.environ, **environment},
                stdin=stdin,
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    return await Link.open(ours), process
