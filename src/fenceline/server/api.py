"""What stands around every request: headers of every answer, the access log, the end of what nobody waits for."""

import asyncio
import logging
import time

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from fenceline.server.protocol import CONNECTION
from fenceline.server.shown_path import shown_path

access = logging.getLogger("fenceline.access")

#: Unless the answer says otherwise: data of a tenant is for its reader alone, and never a page, script or frame.
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_TLS_HEADERS = (*HEADERS, (b"strict-transport-security", b"max-age=31536000"))


class Api(FastAPI):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        connection = scope.get("extensions", {}).get(CONNECTION)
        if connection is not None:
            connection.task = asyncio.current_task()
        answer = Answer(scope, send, started=time.perf_counter() if self.state.server.settings.access_log else None)
        try:
            await super().__call__(scope, receive, answer.send)
        except asyncio.CancelledError:
            # The client has gone, and its statement with it; anything else is meant for the server.
            if connection is None or not connection.is_gone:
                raise


class Answer:
    """Adds to an answer on its way out."""

    def __init__(self, scope: Scope, send: Send, *, started: float | None) -> None:
        self._scope = scope
        self._root: str = scope.get("root_path", "")  # where an application has mounted us
        self._send = send
        self._started = started

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.setdefault("headers", [])
            if self._root:
                headers = [_below(self._root, header) for header in headers]
            said = {name for name, _value in headers}
            usual = _TLS_HEADERS if self._scope["scheme"] == "https" else HEADERS
            message["headers"] = [*headers, *(header for header in usual if header[0] not in said)]
            if self._started is not None:
                self._log(message["status"], self._started)
        await self._send(message)

    def _log(self, status: int, started: float) -> None:
        scope = self._scope
        identity = scope.get("state", {}).get("identity")
        access.info(
            "%s %r %d %.1f ms %s",
            scope["client"][0] if scope.get("client") else "-",
            f"{scope['method']} {shown_path(scope['path'])[:200]}",
            status,
            (time.perf_counter() - started) * 1000,
            "-" if identity is None else f"{identity.actor!r} (tenant {identity.tenant})",
        )


def _below(root: str, header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A place of ours, as it is for whoever asks from outside."""
    name, value = header
    is_ours = name.lower() == b"location" and value.startswith(b"/")
    return (name, root.encode() + value) if is_ours else header
