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
from tests.support.figures import Figures
from tests.support.patience import eventually_blocking, seconds_left

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
    async with httpx.AsyncClient(base_url=victim.url, headers=headers, timeout=seconds_left()) as client:
        assert (await client.post("/v1/triggers", json=body)).status_code == 201


async def send_large_bodies(database: str, folder: Path) -> float:
    """They are refused; the MiB that the server takes meanwhile, at most."""
    with running(database, folder, "--write-seconds", "1") as victim:
        await make_trigger(victim, database)
        before = victim.memory_mib
        body = b'{"size": "' + b"a" * (4 * 2**20 - 12) + b'"}'
        connections = [victim.connect() for _ in range(150)]
        for connection in connections:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                connection.sendall(head(len(body)) + body)
        most = victim.memory_mib
        statuses = set()
        for connection in connections:
            connection.settimeout(seconds_left())
            statuses.add(answer(connection)[:13])
        assert statuses <= {b"HTTP/1.1 413 ", b"HTTP/1.1 503 ", b""}
        assert b"HTTP/1.1 413 " in statuses
        return max(most, victim.memory_mib) - before


async def test_large_trigger_bodies_are_refused(database: str, tmp_path: Path) -> None:
    await send_large_bodies(database, tmp_path)


@pytest.mark.timing
async def test_trigger_bodies_take_little_memory(database: str, tmp_path: Path, figures: Figures) -> None:
    figures.at_most("memory for 150 bodies of 4 MiB", await send_large_bodies(database, tmp_path), 64, "MiB")


async def test_trigger_body_bytes(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, "--trigger-body-bytes", "1000") as victim:
        await make_trigger(victim, database)
        async with httpx.AsyncClient(base_url=victim.url, timeout=seconds_left()) as client:
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
        for connection in slow:
            assert answer(connection).startswith(b"HTTP/1.1 408 ")


async def test_trigger_bodies_of_one_address_have_so_many_places(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, "--trigger-body-seconds", "600", "--header-seconds", "600") as victim:
        await make_trigger(victim, database)
        slow = [victim.connect() for _ in range(16)]
        for connection in slow:
            connection.sendall(head(100) + b"{")

        def is_refused() -> bool:
            another = victim.connect()
            another.sendall(head(2) + b"{}")
            return another.recv(65536).startswith(b"HTTP/1.1 503 ")

        # One address has used up its places as soon as the server has read all of them; another has not.
        eventually_blocking(is_refused, "the places of the address are taken")
        timestamp = int(time.time())
        good = victim.connect("127.0.0.2")
        good.sendall(head(2, sign(SECRET, timestamp, b"{}"), timestamp) + b"{}")
        assert good.recv(65536).startswith(b"HTTP/1.1 202 ")


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
