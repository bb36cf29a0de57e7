"""A connection that is closed does not stay open for a client that takes only a part of its last answer."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from tests.support.patience import eventually

from fenceline.server.protocol import Edge, EdgeProtocol
from fenceline.server.refusals import RefusalLog
from fenceline.server.server_settings import EdgeSettings

BODY = b"a" * 2**23  # more than sockets hold
LOW = 2**21  # what is above is a backlog
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def answer(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": BODY})


async def until(condition: Callable[[], bool], what: str) -> None:
    async def holds() -> bool:
        return condition()

    await eventually(holds, what)


async def test_a_part_of_the_last_answer_buys_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fenceline.server.protocol.LINGER_SECONDS", 10.0)  # enough to take a part of the answer in
    config = uvicorn.Config(answer, lifespan="off", timeout_keep_alive=60)
    config.load()
    edge = Edge(EdgeSettings(header_seconds=2.0, write_seconds=60), RefusalLog())
    protocol = EdgeProtocol(config, uvicorn.server.ServerState(), {}, edge=edge)
    ours, client = socket.socketpair()
    loop = asyncio.get_running_loop()
    with client:
        client.setblocking(False)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, ours)
        transport.set_write_buffer_limits(high=LOW, low=LOW)
        await loop.sock_sendall(client, REQUEST + b"GET / HT")  # the second head never ends: the connection is closed
        await until(transport.is_closing, "the connection is being closed")
        # The client takes so much that what is left no longer counts as a backlog, and nothing more.
        while transport.get_write_buffer_size() > LOW:
            await loop.sock_recv(client, 2**16)
        assert transport.get_write_buffer_size() > 0
        await until(lambda: protocol.is_gone, "the connection is gone")
