"""The HTTP server of `fenceline up`: in this process, on loopback, with a token that is revoked at the end.

The token itself is shown to nobody: a link that works once opens the dashboard.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import uvicorn

from fenceline.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.model.secret import new_token
from fenceline.server.asgi_app import create_app
from fenceline.server.dashboard.sessions import make_code
from fenceline.server.listening import uvicorn_config
from fenceline.server.server_settings import ServerSettings

HOST = "127.0.0.1"
ACTOR = "fenceline up"
TOKEN_LIFE = timedelta(days=1)  # for an `up` that was killed and could not revoke its token


@dataclass(frozen=True, slots=True)
class Door:
    """Where the server is, and what opens it."""

    url: str
    login: str  # a link that opens the dashboard once


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `up` handles signals itself, and stops everything in order


@contextlib.asynccontextmanager
async def serving(app: Fenceline, port: int) -> AsyncIterator[Door]:
    """Serve inside the context; on another port if this one is taken."""
    listener = _listen(port)
    taken = listener.getsockname()[1]
    _secret, token_hash = new_token()
    made = (
        await app_parts(app)
        .database()
        .call(
            calls.tokens.create_token(
                token_hash,
                role="platform_admin",
                tenant=None,
                name=ACTOR,
                expires_at=datetime.now(UTC) + TOKEN_LIFE,
                actor=ACTOR,
            )
        )
    )
    server = _Server(
        # The worker beside it does the maintenance.
        uvicorn_config(
            create_app(ServerSettings(host=HOST, port=taken, maintain=False), app), timeout_graceful_shutdown=2
        )
    )
    task = asyncio.create_task(server.serve(sockets=[listener]), name="server")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has a flag for it, and no event
            await asyncio.sleep(0.01)
        if task.done():
            task.result()
        code, _expires_at = await make_code(app_parts(app).database(), token_hash)
        url = f"http://{HOST}:{taken}"
        # Browsers do not send what follows the hash, so the code appears in no log.
        yield Door(url, f"{url}/login#{code}")
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        await app_parts(app).database().call(calls.tokens.revoke_token(made["id"], actor=ACTOR, tenant=None))


def _listen(port: int) -> socket.socket:
    for choice in (port, 0):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, choice))
        except OSError:
            listener.close()
            continue
        return listener
    raise OSError(f"no port is free on {HOST}")
