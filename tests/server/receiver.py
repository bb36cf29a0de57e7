"""Somebody who receives webhooks over real HTTP, and answers as a test says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from tests.support.patience import give_up, seconds_left


@dataclass(frozen=True, slots=True)
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    port: int = 0
    answers: list[int] = field(default_factory=list)  # then 200
    requests: list[Request] = field(default_factory=list)
    extra: str = ""
    came: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.requests.append(Request(head[0], headers, body))
                status = self.answers.pop(0) if self.answers else 200
                writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\n{self.extra}\r\n".encode())
                await writer.drain()
                self.came.set()
        writer.close()

    async def until(self, met: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(seconds_left()):
                while not met():
                    self.came.clear()
                    await self.came.wait()
        except TimeoutError:
            give_up("requests to the receiver", self.requests)


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
