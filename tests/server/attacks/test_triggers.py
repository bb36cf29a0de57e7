"""Requests to triggers, which have no token: a small body, read in time, and a signature over it as it comes."""

import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.server.attacks.victim import Victim, answer, running, token_of

from fenceline.model.signature import sign

SECRET = "a secret of the tests' own"  # noqa: S105 - that is what it is
PATH = "/v1/triggers/push"


def head(length: int, signature: str = "v1=" + "0" * 64, timestamp: int | None = None) -> bytes:
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        f"Fenceline-Timestamp: {timestamp or int(time.time())}\r\nFenceline-Signature: {signature}\r\n\r\n"
    ).encode()


async def make_trigger(victim: Victim, database: str) -> None:
    headers = {"Authorization": f"Bearer {await token_of(database)}"}
    body = {"name": "push", "kind": "build", "secret": SECRET, "map": {"size": "$.size"}}
    async with httpx.AsyncClient(base_url=victim.url, headers=headers) as client:
        assert (await client.post("/v1/triggers", json=body)).status_code == 201


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is read from /proc")
async def test_trigger_bodies_take_little_memory(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, "--write-seconds", "1") as victim:
        await make_trigger(victim, database)
        before = victim.memory_mib
        body = b'{"size": "' + b"a" * (4 * 2**20 - 12) + b'"}'
        connections = [victim.connect() for _ in range(150)]
        for connection in connections:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                connection.sendall(head(len(body)) + body)
        assert victim.memory_mib - before < 64
        statuses = set()
        for connection in connections:
            connection.settimeout(20)
            statuses.add(answer(connection)[:13])
        assert statuses <= {b"HTTP/1.1 413 ", b"HTTP/1.1 503 ", b""}
        assert b"HTTP/1.1 413 " in statuses
        assert victim.memory_mib - before < 64


async def test_trigger_body_bytes(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, "--trigger-body-bytes", "1000") as victim:
        await make_trigger(victim, database)
        async with httpx.AsyncClient(base_url=victim.url) as client:
            for size, status in ((900, 202), (1000, 413)):
                body = b'{"size": "' + b"a" * size + b'"}'
                timestamp = int(time.time())
                for chunked in (False, True):
                    headers = {
                        "Content-Type": "application/json",
                        "Fenceline-Timestamp": str(timestamp + chunked),
                        "Fenceline-Signature": sign(SECRET, timestamp + chunked, body),
                    }
                    content = iter_of(body) if chunked else body
                    fired = await client.post(PATH, content=content, headers=headers)
                    assert fired.status_code == status, fired.text


async def iter_of(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 100):
        yield body[start : start + 100]


async def test_trigger_body_time(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, "--trigger-body-seconds", "1") as victim:
        await make_trigger(victim, database)
        slow = [victim.connect() for _ in range(16)]
        for connection in slow:
            connection.sendall(head(100) + b"{")
        # One address has used up its places; another has not.
        refused = victim.connect()
        refused.sendall(head(2) + b"{}")
        refused.settimeout(5)
        assert refused.recv(65536).startswith(b"HTTP/1.1 503 ")
        timestamp = int(time.time())
        good = victim.connect("127.0.0.2")
        good.sendall(head(2, sign(SECRET, timestamp, b"{}"), timestamp) + b"{}")
        assert good.recv(65536).startswith(b"HTTP/1.1 202 ")
        for connection in slow:
            assert answer(connection).startswith(b"HTTP/1.1 408 ")


async def test_a_trigger_that_does_not_exist_is_answered_as_late(database: str, tmp_path: Path) -> None:
    """Whether there is one shows neither in the answer nor in when it comes."""
    with running(database, tmp_path, "--trigger-body-seconds", "1") as victim:
        await make_trigger(victim, database)
        answers = []
        for path in (b"push", b"none"):
            connection: socket.socket = victim.connect()
            connection.sendall(head(100).replace(b"push", path) + b"{" + os.urandom(3))
            answers.append(answer(connection))
        assert answers[0] == answers[1]
        assert answers[0].startswith(b"HTTP/1.1 408 ")
