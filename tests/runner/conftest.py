"""A live server and runners that reach it over sockets, all on the test's event loop, and the programs themselves."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import uvicorn
from tests.server.conftest import make_token
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.delivery.http import HttpDelivery
from fenceline.model.worker_settings import WorkerSettings
from fenceline.server.asgi_app import create_app
from fenceline.server.listening import uvicorn_config
from fenceline.server.server_settings import ServerSettings
from fenceline.worker import shutdown
from fenceline.worker.in_process import InProcessWorker

shutdown.GOODBYE_SECONDS = 20.0  # however slow the machine is, the database hears of the end


class LiveServer:
    """uvicorn on a port that stays the same over restarts."""

    def __init__(self, app: Fenceline, settings: ServerSettings) -> None:
        self.app = app
        self._settings = settings
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        config = uvicorn_config(create_app(self._settings, self.app), port=self.port, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # the test's, not ours
        self._serving = asyncio.create_task(self._server._serve())
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await asyncio.wait({self._serving})
            self._server = self._serving = None


@pytest.fixture
async def server_app(database: str) -> AsyncIterator[Fenceline]:
    """The app that the server was started with: one without handlers."""
    async with Fenceline(database) as app:
        yield app


@pytest.fixture
async def live(server_app: Fenceline) -> AsyncIterator[LiveServer]:
    server = LiveServer(server_app, ServerSettings(token_cache_seconds=0.0))
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def token(server_app: Fenceline) -> str:
    return await make_token(server_app, "runner")


def make_runner(app: Fenceline, url: str, token: str, **options: Any) -> InProcessWorker:
    """As the command makes it."""
    connect = partial(HttpDelivery, url, token, lease_seconds=options.pop("lease_seconds", None))
    app_name = options.pop("app_name", None)
    settings = WorkerSettings(**{"grace_seconds": 5.0, "name": "runner", **options})
    return InProcessWorker(app, settings, connect, import_name=app_name, keeper_first=True)


@contextlib.asynccontextmanager
async def running(app: Fenceline, url: str, token: str, **options: Any) -> AsyncIterator[InProcessWorker]:
    """A runner at work for the block; then it is told to stop, and has to."""
    runner = make_runner(app, url, token, **options)
    working = asyncio.create_task(runner.run())
    try:
        yield runner
        runner.stop()
        async with asyncio.timeout(seconds_left()):
            await working
    finally:
        working.cancel()
        await asyncio.wait({working})


def unreachable() -> Fenceline:
    """An app whose database does not exist: whatever a runner does, it cannot be with that."""
    return Fenceline("postgresql://nobody@127.0.0.1:1/nowhere")
