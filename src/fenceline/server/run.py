"""Runs the server: first the doors, then uvicorn.

Fail closed: without any valid token the server does not start, except where `no_auth` says so on loopback, or an
identity provider issues tokens. On the very first start it makes a token for platform_admin and shows it once.
"""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from fenceline.client.app import Fenceline
from fenceline.client.caller import Caller
from fenceline.database import access_calls
from fenceline.errors import FencelineError
from fenceline.model.secret import new_token
from fenceline.server.app import create_app
from fenceline.server.settings import ServerSettings


class NoToken(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """Nobody could speak to this server."""


async def open_doors(caller: Caller, settings: ServerSettings) -> str | None:
    """The token of the very first start, to be shown once; else None. Raises NoToken when nobody has one."""
    if settings.no_auth:
        return None
    token, token_hash = new_token()
    if await caller.call(access_calls.bootstrap_token(token_hash)):
        return token
    if settings.oidc is None and not await caller.call(access_calls.list_tokens(tenant=None, limit=1, valid=True)):
        raise NoToken(
            "no token is valid (all are revoked or expired), so nobody could use this server: make one with "
            "`fenceline token create --role platform_admin`"
        )
    return None


class Listener(uvicorn.Server):
    """uvicorn, but it says when it listens, and a SIGTERM that it has obeyed is a good end."""

    def __init__(self, config: uvicorn.Config, show: Callable[[str], None]) -> None:
        super().__init__(config)
        self._show = show

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # The real port, also where 0 asked for any.
            port = self.servers[0].sockets[0].getsockname()[1]
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            self._show(f"Fenceline listens on http://{host}:{port}")

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
    caller = app.make_caller(1)
    try:
        token = await open_doors(caller, settings)
    finally:
        await caller.close()
    if token is not None:
        show(f"The first token, for role platform_admin. It is shown this once: {token}")
    server = Listener(
        uvicorn.Config(
            create_app(settings, app),
            host=settings.host,
            port=settings.port,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=5,
        ),
        show,
    )
    await server.serve()
