"""The channel between a worker process and whoever keeps its lease: JSON lines over a socket pair.

To the worker: {"renewed": monotonic time}, {"cancel": [attempt ids]}, {"lost": true}, {"stop": true}, {"hurry": true}.
To the keeper: {"registered": worker id, "fail_kinds": […]}, {"counts": …} (for metrics), {"bye": exit code},
{"unloadable": why the app cannot be imported}. The end of the stream means that the other side has died.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fenceline.model.json_text import stored_json

#: The limit of one message: args and results of isolated handlers are one message each, and a list of cancelled
#: attempts is limited only by the worker's concurrency.
MAX_BYTES = 2**28


class ProcessChannel:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> "ProcessChannel":
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end, limit=MAX_BYTES))

    @classmethod
    async def from_descriptor(cls, descriptor: int) -> "ProcessChannel":
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)  # a process that a handler starts must not keep it open after our end
        return await cls.open(end)

    def send(self, **message: Any) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the other side is gone."""
        try:
            return _read(await self._reader.readline())
        except ConnectionError:
            return None

    def close(self) -> None:
        self._writer.close()


class BlockingChannel:
    """The end of a process without an event loop. Any thread may send, one receives."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._lines = self._socket.makefile("rb")
        self._turn = threading.Lock()

    def send(self, **message: Any) -> None:
        with self._turn:
            self._socket.sendall(stored_json(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        return _read(self._lines.readline())


def _read(line: bytes) -> dict[str, Any] | None:
    """A message; None: the other side ended before it was complete."""
    if not line.endswith(b"\n"):
        return None
    message: dict[str, Any] = json.loads(line)
    return message


async def start_with_channel(
    module: str,
    arguments: Callable[[int], Sequence[object]],
    *,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
) -> tuple[ProcessChannel, Process]:
    """Start `python -m module` with the other end of a channel, whose descriptor is passed to `arguments`, and with the
    other `descriptors`.

    It gets its own session: Ctrl-C in a terminal does not reach it, and what it starts can be killed with it.
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
    return await ProcessChannel.open(ours), process
