"""One unauthenticated connection, or many, do not stop the server: bytes, seconds and connections have an end."""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from tests.conftest import Connect
from tests.server.attacks.victim import Victim, answer, running, token_of

Run = Callable[..., AbstractContextManager[Victim]]
QUICK = ("--header-seconds", "1", "--body-seconds", "1", "--idle-seconds", "1", "--write-seconds", "1")


@pytest.fixture
def run(database: str, tmp_path: Path) -> Run:
    def start(*flags: str) -> AbstractContextManager[Victim]:
        return running(database, tmp_path, *flags)

    return start


@pytest.fixture
def quick(run: Run) -> Iterator[Victim]:
    """A server whose patience is short."""
    with run(*QUICK) as victim:
        yield victim


def send_until_closed(connection: socket.socket, piece: bytes, most: int) -> int:
    """How many bytes the server let us send."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            connection.sendall(piece)
            sent += len(piece)
    return sent


LONG = {
    "header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ",
    "target": b"GET /healthz?",
    "trailer": b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Trailer: ",
    "chunk extension": b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;extension=",
}


def test_header_bytes(run: Run) -> None:
    with run("--header-seconds", "60", "--body-seconds", "60") as victim:
        used = victim.cpu_seconds
        for what, start in LONG.items():
            connection = victim.connect()
            connection.sendall(start)
            sent = send_until_closed(connection, b"a" * 65536, 130 * 2**20)
            assert sent < 16 * 2**20, what  # what sockets hold, and no more
        connection = victim.connect()
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X-Many: a\r\n" * 4000 + b"\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 431 ")
        assert victim.cpu_seconds - used < 5
        assert httpx.get(f"{victim.url}/healthz").status_code == 200


def test_header_time(quick: Victim) -> None:
    halves = [quick.connect() for _ in range(200)]
    for connection in halves:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    for connection in halves[:20]:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"a")  # a byte now and then buys no time
    for connection in halves:
        assert answer(connection).startswith(b"HTTP/1.1 408 ")
    assert quick.open_sockets == 0


def test_silent_connections(quick: Victim) -> None:
    silent = [quick.connect() for _ in range(200)]
    for connection in silent:
        answer(connection)
    assert quick.open_sockets == 0


def test_idle_time(quick: Victim) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for last_words in (b"", b"\r\n\r\n", b"GET"):
        connection = quick.connect()
        connection.sendall(request)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(last_words)
        answer(connection)
    assert quick.open_sockets == 0


async def test_body_time(quick: Victim, database: str) -> None:
    token = await token_of(database)
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    connection = quick.connect()
    connection.sendall(head.encode())
    assert answer(connection).startswith(b"HTTP/1.1 408 ")
    # Without a token nobody waits for a body: the answer is there, and the rest has a moment.
    stranger = quick.connect()
    stranger.sendall(head.replace("Bearer", "Nobody").encode())
    assert answer(stranger).startswith(b"HTTP/1.1 401 ")
    assert quick.open_sockets == 0


def test_answers_that_nobody_takes(quick: Victim) -> None:
    connection = quick.connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    connection.settimeout(10)
    with contextlib.suppress(ConnectionError):
        for _ in range(500):  # pipelined, and no answer is read
            connection.sendall(request)
    assert connection.recv(1) == b"H"  # the server is at it
    deadline = time.monotonic() + 60
    while quick.open_sockets and time.monotonic() < deadline:
        time.sleep(0.1)
    assert quick.open_sockets == 0


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is read from /proc")
async def test_idle_streams_take_little_memory(run: Run, database: str, connect: Connect) -> None:
    """Each has shown a job of 1 MiB, and waits for what happens to it."""
    job = await (await connect()).fetchval(
        "select fenceline.public_id(job_id) from fenceline.enqueue('big', $1)", json.dumps({"text": "a" * 1_000_000})
    )
    token = await token_of(database, "viewer")
    head = f"GET /v1/jobs/{job}/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with run() as victim:
        before = victim.memory_mib
        for _ in range(200):
            connection = victim.connect()
            connection.sendall(head)
            taken = 0
            while taken < 1_000_000:
                taken += len(connection.recv(2**20))
        assert victim.memory_mib - before < 96


def test_connections_per_address_and_in_all(run: Run, tmp_path: Path) -> None:
    with run("--connections-per-address", "20", "--max-connections", "30") as victim:
        held = [victim.connect() for _ in range(20)]
        refused = answer(victim.connect())
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b'"code": "busy"' in refused
        elsewhere = [victim.connect("127.0.0.2") for _ in range(10)]
        elsewhere[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert elsewhere[0].recv(65536).startswith(b"HTTP/1.1 200 ")
        assert answer(victim.connect("127.0.0.3")).startswith(b"HTTP/1.1 503 ")
        for connection in held:
            connection.close()
        deadline = time.monotonic() + 10
        while victim.open_sockets > 10 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert httpx.get(f"{victim.url}/healthz").status_code == 200
    assert "refused 503 busy from 127.0.0.1: there are too many connections" in (tmp_path / "server.log").read_text()


def test_what_is_not_http_is_closed(quick: Victim) -> None:
    connection = quick.connect()
    connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    assert answer(connection).startswith(b"HTTP/1.1 400 ")
