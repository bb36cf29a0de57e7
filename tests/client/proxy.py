"""A line to the server that a test can cut where it likes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit


class Proxy:
    """Forwards connections to a server's socket.

    `lose_reply`: the next answer of the server is lost, and the connection with it: what was asked has been done.
    `lose_request`: the next request is lost, and the connection with it: nothing has been done.
    `stall`: from now on nothing moves, in either direction, and nobody is told, until `flow`.
    `stall_at`: stall as soon as a reply is larger than so many bytes.
    """

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._lines: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.stall_at: int | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.lose_reply = False
        self.lose_request = False

    @property
    def dsn(self) -> str:
        user = self._target.netloc.rpartition("@")[0]
        return f"postgresql://{user}@127.0.0.1:{self._port}{self._target.path}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Accept no more connections, and cut those that there are."""
        assert self._server is not None
        self._server.close()
        await self.cut()

    async def cut(self) -> None:
        """Cut the connections that there are; new ones can be made."""
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)

    @property
    def lines(self) -> int:
        """How many connections there are."""
        return len(self._lines)

    @property
    def is_stalled(self) -> bool:
        return not self._flowing.is_set()

    def stall(self) -> None:
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        line = asyncio.current_task()
        assert line is not None
        self._lines.add(line)
        ends = [writer]
        pumps: list[asyncio.Task[None]] = []
        try:
            there, back = await self._reach()
            ends.append(back)
            pumps += [
                asyncio.create_task(self._pump(reader, back, "lose_request")),
                asyncio.create_task(self._pump(there, writer, "lose_reply")),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except (asyncio.CancelledError, OSError):
            pass
        finally:
            for pump in pumps:
                pump.cancel()
            for end in ends:
                end.transport.abort()
            self._lines.discard(line)

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        query = parse_qs(self._target.query)
        if "host" in query:
            return await asyncio.open_unix_connection(f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}")
        return await asyncio.open_connection(self._target.hostname, self._target.port or 5432)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, trap: str) -> None:
        size = 0
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                # A full read is part of something larger.
                size = size + len(data) if len(data) > 4096 else 0
                if self.stall_at is not None and trap == "lose_reply" and size > self.stall_at:
                    self.stall()
                await self._flowing.wait()
                if getattr(self, trap):
                    setattr(self, trap, False)
                    return
                sink.write(data)
                await sink.drain()


@contextlib.asynccontextmanager
async def proxied(dsn: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(dsn)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.refuse()
