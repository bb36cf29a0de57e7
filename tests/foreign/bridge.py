"""Lets programs in other languages be tested with handlers in Python: they ask over HTTP, and the handler answers.

    POST /KIND, with the args; Number and Token are what the program was told of its attempt
    200 and the result; 422: fail for good; 500: failed

Whoever hangs up has been told to stop.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping
from typing import Any

from fenceline import Cancelled, Fail
from fenceline.client.handler import Handler
from fenceline.client.handler_parts import handler_parts


class ForeignContext:
    """What a handler of the suite is told, as far as a program in another language can tell it."""

    def __init__(self, number: int, token: int) -> None:
        self.attempt = number
        self.token = token
        self.cancelled = False

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled("asked to stop")


class Bridge:
    def __init__(self, handlers: Mapping[str, Handler[Any, Any]]) -> None:
        self._handlers = handlers
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        kind = head[0].split()[1].lstrip("/")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        context = ForeignContext(int(headers["number"]), int(headers["token"]))
        running = asyncio.ensure_future(self._run(kind, json.loads(body), context))
        hung_up = asyncio.ensure_future(reader.read())
        await asyncio.wait({running, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            context.cancelled = True
            running.cancel()
            await asyncio.wait({running})
        elif not writer.is_closing():
            status, answer = running.result()
            text = answer.encode()
            writer.write(f"HTTP/1.1 {status} .\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode())
            writer.write(text)
        hung_up.cancel()
        writer.close()

    async def _run(self, kind: str, args: dict[str, Any], context: ForeignContext) -> tuple[int, str]:
        function = handler_parts(self._handlers[kind]).function
        if "ctx" in inspect.signature(function).parameters:
            args = {**args, "ctx": context}
        try:
            is_async = inspect.iscoroutinefunction(function)
            result = await (function(**args) if is_async else asyncio.to_thread(function, **args))
            return 200, json.dumps(result)
        except Fail as error:
            return 422, str(error)
        except Exception as error:  # noqa: BLE001 - as a handler's exception is the attempt's failure
            return 500, str(error)
