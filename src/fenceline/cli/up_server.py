"""The HTTP server of `fenceline up`: in this process, on loopback, with a token that lives as long as it does."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import uvicorn

from fenceline.client.app import Fenceline
from fenceline.database import access_calls
from fenceline.model.secret import new_token
from fenceline.server.app import create_app
from fenceline.server.settings import ServerSettings

HOST = "127.0.0.1"
ACTOR = "fenceline up"
TOKEN_LIFE = timedelta(days=1)  # for an `up` that was killed and could not revoke its token


@dataclass(frozen=True, slots=True)
class Door:
    """Where the server is, and what opens it."""

    url: str
    token: str


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for `up` itself, which ends everything in order


@contextlib.asynccontextmanager
async def serving(app: Fenceline, port: int) -> AsyncIterator[Door]:
    """Serve until left; on another port if this one is taken."""
    listener = _listen(port)
    taken = listener.getsockname()[1]
    secret, token_hash = new_token()
    made = await app.caller().call(
        access_calls.create_token(
            token_hash,
            role="platform_admin",
            tenant=None,
            name=ACTOR,
            expires_at=datetime.now(UTC) + TOKEN_LIFE,
            actor=ACTOR,
        )
    )
    server = _Server(
        uvicorn.Config(
            # The worker beside it does the maintenance.
            create_app(ServerSettings(host=HOST, port=taken, maintain=False), app),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
        )
    )
    task = asyncio.create_task(server.serve(sockets=[listener]), name="server")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has a flag for it, and no event
            await asyncio.sleep(0.01)
        if task.done():
            task.result()
        yield Door(f"http://{HOST}:{taken}", secret)
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        await app.caller().call(access_calls.revoke_token(made["id"], actor=ACTOR, tenant=None))


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
