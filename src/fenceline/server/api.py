"""What surrounds every request: standard headers, the access log, and cancelling requests whose client has gone."""

import asyncio
import logging
import time

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from fenceline.server.hiding import shown_path
from fenceline.server.protocol import CONNECTION

access = logging.getLogger("fenceline.access")

#: Unless the answer sets them itself: data is for its reader only, and never a page, script or frame.
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
        started = time.perf_counter() if self.state.server.settings.access_log else None
        send = _with_headers(scope, send, started)
        request = _without_body(scope, send) if scope["method"] == "HEAD" else (scope, receive, send)
        try:
            await super().__call__(*request)
        except asyncio.CancelledError:
            # If the client has gone, so has its statement. Any other cancellation is meant for the server.
            if connection is None or not connection.is_gone:
                raise


def _without_body(scope: Scope, send: Send) -> tuple[Scope, Receive, Send]:
    """HEAD, which load balancers and monitors send, as GET without the body. A stream, which would never end, is told
    that its client has gone.
    """
    is_read = False
    answered = asyncio.Event()

    async def receive() -> Message:
        nonlocal is_read
        if not is_read:
            is_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send_start(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            answered.set()

    return {**scope, "method": "GET"}, receive, send_start


def _with_headers(scope: Scope, send: Send, started: float | None) -> Send:
    """Adds the standard headers to an answer, and logs it if it is known when the request `started`."""
    root: str = scope.get("root_path", "")  # where an application has mounted us
    standard = _TLS_HEADERS if scope["scheme"] == "https" else HEADERS

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [_below(root, header) for header in message.get("headers", ())]
            present = {name for name, _value in headers}
            message["headers"] = [*headers, *(header for header in standard if header[0] not in present)]
            if started is not None:
                _log(scope, message["status"], started)
        await send(message)

    return send_with_headers


def _log(scope: Scope, status: int, started: float) -> None:
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
    """Makes a `Location` of ours valid where we are mounted."""
    name, value = header
    is_ours = name.lower() == b"location" and value.startswith(b"/")
    return (name, root.encode() + value) if is_ours else header
