"""A server on a real port, in a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from tests.support.patience import KEPT_SECONDS, eventually_blocking, seconds_left

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.listening import uvicorn_config
from fenceline.server.server_settings import ServerSettings


@contextmanager
def live_server(app: Fenceline, settings: ServerSettings | None = None) -> Iterator[str]:
    """The URL of a running server on loopback."""
    config = uvicorn_config(
        create_app(settings or ServerSettings(maintain=False, stream_seconds=0.1), app),
        host="127.0.0.1",
        port=0,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    started = threading.Event()
    startup = server.startup

    async def tell(sockets: object = None) -> None:
        await startup(sockets)  # type: ignore[arg-type]  # whatever uvicorn passes itself
        started.set()

    server.startup = tell  # type: ignore[method-assign]  # uvicorn has no other way to tell
    thread = threading.Thread(target=server.run, name="live server")
    thread.start()
    try:
        eventually_blocking(lambda: started.is_set() or not thread.is_alive(), "the server starts")
        assert started.is_set(), "the server did not start"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(max(seconds_left(), KEPT_SECONDS / 2))  # a test that gave up has its reserve for this
        assert not thread.is_alive()
