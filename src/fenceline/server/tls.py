"""TLS in the server itself.

The handshake is done here and not by the listening socket, so that a connection has its place, and its deadline, from
the moment it is accepted.
"""

import asyncio
import logging
import os
import socket
import ssl
from typing import Any

from fenceline.server.problems import Problem
from fenceline.server.protocol import Edge, EdgeProtocol
from fenceline.server.server_settings import TlsSettings

log = logging.getLogger("fenceline.server")


class Certificates:
    """The server's certificate, and the authority of its clients' certificates where there is one."""

    def __init__(self, settings: TlsSettings) -> None:
        """Raises OSError (ssl.SSLError is one) when a file cannot be read or does not fit."""
        self._settings = settings
        self._loaded = self._stamp()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """As the files are now: a renewed certificate, or another authority, counts from the next connection on."""
        try:
            stamp = self._stamp()
            if stamp != self._loaded:
                self._context, self._loaded = self._load(), stamp
        except OSError as error:
            # Between two writes, perhaps; the next connection looks again.
            log.warning("the new TLS certificate cannot be used, the old one goes on: %s", error)
        return self._context

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._settings.cert, self._settings.key)
        if self._settings.client_ca is not None:
            # A browser may come without; which routes need one is the application's to say.
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self._settings.client_ca)
        return context

    def _stamp(self) -> tuple[int, ...]:
        settings = self._settings
        files = (settings.cert, settings.key, settings.client_ca)
        return tuple(file.stat().st_mtime_ns for file in files if file is not None)


class TlsDoor(asyncio.Protocol):
    """A connection until its handshake is done; `of_uvicorn` is for what speaks HTTP inside."""

    def __init__(self, *, edge: Edge, certificates: Certificates, **of_uvicorn: Any) -> None:
        self._edge = edge
        self._certificates = certificates
        self._of_uvicorn = of_uvicorn
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it is one
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        # Not `start_tls`: on uvloop a transport reads on while its task has not begun, and what it read is lost.
        connection = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        transport.abort()  # our copy stays open
        if self._edge.enter(host):
            self._handshake = asyncio.create_task(self._open(connection, host))
        else:
            self._edge.log.add(host, Problem("busy", "there are too many connections, in all or from this address"))
            connection.close()

    async def _open(self, connection: socket.socket, host: str) -> None:
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: EdgeProtocol(edge=self._edge, entered=True, **self._of_uvicorn),
                connection,
                ssl=self._certificates.context(),
                ssl_handshake_timeout=self._edge.settings.header_seconds,
            )
        except OSError as error:
            # Without a handshake nobody inside has heard of the connection, or would give back its place.
            self._edge.leave(host)
            self._edge.log.add(host, Problem("malformed", f"the TLS handshake failed: {error}"))
            connection.close()
