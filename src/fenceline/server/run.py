"""Runs the server: first the doors, then uvicorn.

Fail closed: without any valid token the server does not start, except where `no_auth` says so on loopback, or an
identity provider issues tokens. On the very first start it makes a token for platform_admin (`first_token`).
"""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.errors import FencelineError
from fenceline.model.secret import new_token
from fenceline.runtime.database import Database
from fenceline.server import first_token
from fenceline.server.asgi_app import create_app
from fenceline.server.listening import uvicorn_config
from fenceline.server.server_settings import ServerSettings, TlsSettings


class NoToken(FencelineError):
    """Nobody could speak to this server."""


async def open_doors(database: Database, settings: ServerSettings) -> str | None:
    """The token of the very first start, to be shown once; else None. Raises NoToken when nobody has one."""
    if settings.no_auth:
        return None
    token, token_hash = new_token()
    if await database.call(calls.tokens.bootstrap_token(token_hash)):
        return token
    if settings.oidc is None and not await database.call(calls.tokens.list_tokens(tenant=None, limit=1, valid=True)):
        raise NoToken(
            "no token is valid (all are revoked or expired), so nobody can use this server: make one with "
            "`fenceline token create --role platform_admin`"
        )
    return None


class Listener(uvicorn.Server):
    """uvicorn, but it says when it listens, and a SIGTERM that it has obeyed is a good end."""

    def __init__(self, config: uvicorn.Config, show: Callable[[str], None], *, tls: TlsSettings | None) -> None:
        super().__init__(config)
        self._show = show
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # The real port, also where 0 asked for any.
            port = self.servers[0].sockets[0].getsockname()[1]
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            scheme = "http" if self._tls is None else "https"
            self._show(f"Fenceline listens on {scheme}://{host}:{port}")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def allow_many_files() -> None:
    """As many open files as the system lets us have: a stream is one, and 1,024 are soon used up."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(app: Fenceline, settings: ServerSettings, show: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `show` prints a line for people."""
    allow_many_files()
    database = app_parts(app).make_database(1)
    try:
        token = await open_doors(database, settings)
    finally:
        await database.close()
    if token is not None:
        first_token.hand_over(token, show, settings.first_token_file)
    server = Listener(
        uvicorn_config(create_app(settings, app), host=settings.host, port=settings.port, timeout_graceful_shutdown=5),
        show,
        tls=settings.tls,
    )
    await server.serve()
