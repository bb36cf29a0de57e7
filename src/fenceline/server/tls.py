"""TLS in the server itself.

The handshake is done here and not by the listening socket, so that a connection counts, and has a deadline, from the
moment it is accepted.
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
    """The server's certificate, and the authority for client certificates if there is one."""

    def __init__(self, settings: TlsSettings) -> None:
        """Raises OSError (ssl.SSLError is one) if a file cannot be read or used."""
        self._settings = settings
        self._loaded = self._stamp()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """From the files as they are now: a renewed certificate or authority counts from the next connection on."""
        try:
            stamp = self._stamp()
            if stamp != self._loaded:
                self._context, self._loaded = self._load(), stamp
        except OSError as error:
            # Perhaps only one of the files has been replaced so far; the next connection tries again.
            log.warning("the new TLS certificate cannot be used, the old one goes on: %s", error)
        return self._context

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._settings.cert, self._settings.key)
        if self._settings.client_ca is not None:
            # Optional, for browsers; the application decides which routes require one.
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self._settings.client_ca)
        return context

    def _stamp(self) -> tuple[int, ...]:
        settings = self._settings
        files = (settings.cert, settings.key, settings.client_ca)
        return tuple(file.stat().st_mtime_ns for file in files if file is not None)


class TlsDoor(asyncio.Protocol):
    """A connection until its handshake is done; `of_uvicorn` are the arguments for the HTTP protocol inside."""

    def __init__(self, *, edge: Edge, certificates: Certificates, **of_uvicorn: Any) -> None:
        self._edge = edge
        self._certificates = certificates
        self._of_uvicorn = of_uvicorn
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it is one
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        # Not `start_tls`: uvloop's transport reads on before the task has begun, and those bytes are lost.
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
            # Without a handshake no EdgeProtocol knows of the connection and gives back its place.
            self._edge.leave(host)
            self._edge.log.add(host, Problem("malformed", f"the TLS handshake failed: {error}"))
            connection.close()
