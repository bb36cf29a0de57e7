"""Runs the server.

Fail closed: without any valid token the server does not start, except with `no_auth` on loopback or with an identity
provider that issues tokens. On the very first start it creates a token for platform_admin.
"""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.errors import FencelineError
from fenceline.model.secret import new_token
from fenceline.runtime.database import Database
from fenceline.server.asgi_app import create_app
from fenceline.server.listening import uvicorn_config
from fenceline.server.server_settings import ServerSettings, TlsSettings

#: In the folder of the embedded database, or in `$FENCELINE_HOME`.
FILE_NAME = "first-token"


class NoToken(FencelineError):
    """There is no valid token, so nobody could use this server."""


class NoPlace(FencelineError):
    """The first token cannot be handed over."""


async def open_doors(database: Database, settings: ServerSettings) -> str | None:
    """The token of the very first start, to be shown once; else None. Raises NoToken if there is no valid token."""
    if settings.no_auth:
        await database.call(calls.system.schema_version())  # as below: without a schema there is nothing to serve
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


def hand_over(token: str, show: Callable[[str], None], file: Path | None = None) -> None:
    """Show the first token on a terminal; without one, or with a file, write it to the file. Raises NoPlace.

    It never goes to a log, where it would be kept and collected. It is valid for a day, to create others with it.
    """
    what = "The first token, for role platform_admin, valid for a day"
    if file is None and sys.stdout.isatty():
        show(f"{what}. It is shown this once: {token}")
        return
    path = file or Path(os.environ.get("FENCELINE_HOME") or ".fenceline") / FILE_NAME
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # an old one belongs to another database, and others may be able to read it
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise NoPlace(
            f"the first token cannot be written to {path}: {error.strerror}. Make one with `fenceline token create "
            "--role platform_admin`, and start again"
        ) from error
    with os.fdopen(descriptor, "w") as output:
        output.write(f"{token}\n")
    show(f"{what}, is in {path}")


class Listener(uvicorn.Server):
    """uvicorn, but it shows the address when it listens, and exits normally after SIGTERM."""

    def __init__(self, config: uvicorn.Config, show: Callable[[str], None], *, tls: TlsSettings | None) -> None:
        super().__init__(config)
        self._show = show
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # The real port, even if 0 was given.
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
    """Allow as many open files as the system permits: each stream is one, and 1,024 are soon used up."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(app: App, settings: ServerSettings, show: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `show` prints a line for people."""
    allow_many_files()
    database = app_parts(app).make_database(1)
    try:
        token = await open_doors(database, settings)
    finally:
        await database.close()
    if token is not None:
        hand_over(token, show, settings.first_token_file)
    server = Listener(
        uvicorn_config(create_app(settings, app), host=settings.host, port=settings.port, timeout_graceful_shutdown=5),
        show,
        tls=settings.tls,
    )
    await server.serve()
