"""A server as people run it, in a process of its own, and what attackers and bystanders do to it. All on loopback."""

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from tests.server.conftest import make_token
from tests.support.patience import KEPT_SECONDS, seconds_left

from fenceline import Fenceline

COMMAND = str(Path(sys.executable).parent / "fenceline")


@dataclass(frozen=True, slots=True)
class Victim:
    """A running server."""

    url: str
    port: int
    process: "subprocess.Popen[str]"
    closing: contextlib.ExitStack

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection, closed with the server at the latest."""
        address, seconds = ("127.0.0.1", self.port), seconds_left()
        connection = socket.create_connection(address, timeout=seconds, source_address=(source, 0))
        return self.closing.enter_context(connection)

    @property
    def memory_mib(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20

    @property
    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    @property
    def open_sockets(self) -> int:
        """Connections that the server holds."""
        connections = psutil.Process(self.process.pid).net_connections("tcp")
        return sum(1 for one in connections if one.status == "ESTABLISHED" and one.laddr.port == self.port)


@contextlib.contextmanager
def running(database: str, folder: Path, *flags: str) -> Iterator[Victim]:
    """`fenceline server` until the block ends. What it writes is in `server.log` of the folder."""
    with (folder / "server.log").open("w") as log, contextlib.ExitStack() as closing:
        process = subprocess.Popen(
            [COMMAND, "server", "--port", "0", *flags],
            cwd=folder,
            env=os.environ | {"FENCELINE_DSN": database},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, (folder / "server.log").read_text()
                found = re.search(r"listens on (https?://\S+?:(\d+))", line)
            yield Victim(found[1], int(found[2]), process, closing)
        finally:
            process.terminate()
            try:
                # A test that gave up has its reserve for this.
                process.communicate(timeout=max(seconds_left(), KEPT_SECONDS / 2))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise


def answer(connection: socket.socket) -> bytes:
    """All that comes until the server closes; raises TimeoutError when it does not."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65536):
            found += chunk
    return found


async def token_of(database: str, role: str = "operator", **options: str) -> str:
    async with Fenceline(database) as app:
        return await make_token(app, role, **options)


class Bystander:
    """Another tenant, who goes on working: enqueues a job and reads it, again and again."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.seconds: list[float] = []
        self.statuses: set[int] = set()

    async def run(self) -> None:
        while True:
            started = time.perf_counter()
            made = await self._client.post("/v1/jobs", json={"kind": "plain"})
            read = await self._client.get(made.headers.get("location", "/v1/jobs"))
            self.seconds.append((time.perf_counter() - started) / 2)
            self.statuses |= {made.status_code, read.status_code}
            await asyncio.sleep(0.005)

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


@contextlib.asynccontextmanager
async def bystander(victim: Victim, database: str, clients: int = 2) -> AsyncIterator[Bystander]:
    """Works while the block runs."""
    token = await token_of(database, tenant="bystander", name="by")
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=victim.url, headers=headers, timeout=seconds_left()) as client:
        found = Bystander(client)
        tasks = [asyncio.create_task(found.run()) for _ in range(clients)]
        try:
            yield found
        finally:
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(ended, asyncio.CancelledError), ended
