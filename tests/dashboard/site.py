"""A whole site for a browser: a database of its own, a server on a real port and a worker process."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from tests.server.conftest import make_token
from tests.support.patience import seconds_left
from tests.support.tools import needed_tool

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.listening import uvicorn_config
from fenceline.server.server_settings import ServerSettings

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]


def find_chromium() -> str:
    return needed_tool("chromium", "chromium-browser", "google-chrome")


def apart(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread of its own: the browser's driver has the event loop of this one."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(asyncio.run, work).result()


@dataclass
class Site:
    """`stop_server` and `start_server` take the server away and bring it back, on the same port."""

    dsn: str
    settings: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start_server(self) -> None:
        chosen: dict[str, Any] = {"token_cache_seconds": 0.2, **self.settings}
        api = create_app(ServerSettings(port=self.port, **chosen), Fenceline(self.dsn))
        self._server = uvicorn.Server(
            uvicorn_config(api, host="127.0.0.1", port=self.port, timeout_graceful_shutdown=1)
        )
        started = threading.Event()
        startup = self._server.startup

        async def tell(sockets: object = None) -> None:
            await startup(sockets)  # type: ignore[arg-type]  # whatever uvicorn passes itself
            started.set()

        self._server.startup = tell  # type: ignore[method-assign]  # uvicorn has no other way to tell
        self._thread = threading.Thread(target=self._server.run, name="site")
        self._thread.start()
        while not started.wait(0.1):
            assert self._thread.is_alive(), "the server did not start"
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def stop_server(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join()

    def token(self, role: str, **options: Any) -> str:
        async def make() -> str:
            async with Fenceline(self.dsn) as app:
                return await make_token(app, role, **options)

        return apart(make())

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=300)


@contextlib.contextmanager
def worker_of(dsn: str, *options: str) -> Iterator[None]:
    """A real worker process, up when the block begins."""
    environment = {**os.environ, "FENCELINE_DSN": dsn, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "fenceline", "worker", "tests.dashboard.shop_app:app", "--grace", "1", *options]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(seconds_left())
            finally:
                process.kill()


@contextlib.contextmanager
def site_on(dsn: str, **settings: Any) -> Iterator[Site]:
    site = Site(dsn, settings)
    site.start_server()
    try:
        yield site
    finally:
        site.stop_server()
