"""One unauthenticated connection, or many, do not stop the server: bytes, seconds and connections have an end."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from tests.conftest import Connect
from tests.server.attacks.victim import Victim, answer, running, token_of
from tests.server.watching import Watcher, Work
from tests.support.figures import Figures
from tests.support.patience import eventually, eventually_blocking, seconds_left

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


def send_endless_heads(run: Run) -> float:
    """They are cut off; the seconds of processor time that it takes the server."""
    with run("--header-seconds", "600", "--body-seconds", "600") as victim:
        used = victim.cpu_seconds
        for what, start in LONG.items():
            connection = victim.connect()
            connection.sendall(start)
            sent = send_until_closed(connection, b"a" * 65536, 130 * 2**20)
            assert sent < 16 * 2**20, what  # what sockets hold, and no more
        connection = victim.connect()
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X-Many: a\r\n" * 4000 + b"\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 431 ")
        used = victim.cpu_seconds - used
        assert httpx.get(f"{victim.url}/healthz", timeout=seconds_left()).status_code == 200
    return used


def test_header_bytes(run: Run) -> None:
    send_endless_heads(run)


@pytest.mark.timing
def test_header_bytes_take_little_processor_time(run: Run, figures: Figures) -> None:
    figures.at_most("processor time for heads without end", send_endless_heads(run), 5)


def test_header_time(quick: Victim) -> None:
    halves = []
    for number in range(200):
        connection = quick.connect()
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        if number < 20:
            connection.sendall(b"a")  # a byte now and then buys no time
        halves.append(connection)
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
    with contextlib.suppress(ConnectionError):
        for _ in range(500):  # pipelined, and no answer is read
            connection.sendall(request)
    assert connection.recv(1) == b"H"  # the server is at it
    eventually_blocking(lambda: quick.open_sockets == 0, "the connection is cut")


async def open_idle_streams(run: Run, database: str, connect: Connect, count: int) -> float:
    """How many MiB they take. Each has shown a job of 1 MiB, and waits for what happens to it."""
    job = await (await connect()).fetchval(
        "select fenceline.public_id(job_id) from fenceline.enqueue('big', $1)", json.dumps({"text": "a" * 1_000_000})
    )
    token = await token_of(database, "viewer")
    head = f"GET /v1/jobs/{job}/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with run() as victim:
        before = victim.memory_mib
        for _ in range(count):
            connection = victim.connect()
            connection.sendall(head)
            taken = 0
            while taken < 1_000_000:
                chunk = connection.recv(2**20)
                assert chunk, "the server closed it"
                taken += len(chunk)
        assert victim.open_sockets == count
        return victim.memory_mib - before


async def test_idle_streams_stay_open(run: Run, database: str, connect: Connect) -> None:
    await open_idle_streams(run, database, connect, 20)


@pytest.mark.timing
async def test_idle_streams_take_little_memory(run: Run, database: str, connect: Connect, figures: Figures) -> None:
    taken = await open_idle_streams(run, database, connect, 200)
    figures.at_most("memory for 200 idle streams", taken, 96, "MiB")


async def write_past_stalled_streams(run: Run, database: str, connect: Connect, path: str) -> float:
    """How many MiB the server takes meanwhile, at most."""
    work = await Work.start(await connect())
    job = await work.enqueue()
    await work.claim()
    token = await token_of(database, "viewer")
    head = f"GET {path.format(job=job)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with run("--write-seconds", "5") as victim:
        stalled = [victim.connect() for _ in range(50)]
        for connection in stalled:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(head)
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx.AsyncClient(base_url=victim.url, headers=headers, timeout=seconds_left()) as client,
            Watcher(client, path.format(job=job)) as reader,
        ):
            await reader.until(lambda: "claimed" in reader.statuses)
            before = most = victim.memory_mib
            for batch in range(30):
                await work.log(job, *(f"{batch}.{n} " + "a" * 8000 for n in range(50)))
                await asyncio.sleep(0.05)
                most = max(most, victim.memory_mib)
            await reader.until(lambda: len(reader.messages) == 1500)
            most = max(most, victim.memory_mib)

            async def are_cut_off() -> bool:
                return victim.open_sockets == 1

            await eventually(are_cut_off, "only who reads is left", lambda: victim.open_sockets)
    return most - before


EACH_STREAM = pytest.mark.parametrize("path", ["/v1/jobs/{job}/stream", "/v1/stream"], ids=["job", "all"])


@EACH_STREAM
async def test_streams_that_nobody_reads(run: Run, database: str, connect: Connect, path: str) -> None:
    """They are cut off, and whoever reads is not held up."""
    await write_past_stalled_streams(run, database, connect, path)


@pytest.mark.timing
@EACH_STREAM
async def test_streams_that_nobody_reads_take_little_memory(
    run: Run, database: str, connect: Connect, path: str, figures: Figures
) -> None:
    """Little waits for each of them, whatever is written: all of it would be 600 MiB."""
    taken = await write_past_stalled_streams(run, database, connect, path)
    figures.at_most("memory for 50 streams that nobody reads", taken, 96, "MiB")


def test_connections_per_address_and_in_all(run: Run, tmp_path: Path) -> None:
    limits = ("--connections-per-address", "20", "--max-connections", "30")
    with run(*limits, "--header-seconds", "600", "--idle-seconds", "600") as victim:
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

        def is_let_in() -> bool:
            try:
                return httpx.get(f"{victim.url}/healthz", timeout=seconds_left()).status_code == 200
            except httpx.TransportError:  # refused: whoever is still sending may not see the answer
                return False

        # The place of a connection is free some time after the connection has ended.
        eventually_blocking(is_let_in, "there is room again")
    assert "refused 503 busy from 127.0.0.1: there are too many connections" in (tmp_path / "server.log").read_text()


def test_what_is_not_http_is_closed(quick: Victim) -> None:
    connection = quick.connect()
    connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    assert answer(connection).startswith(b"HTTP/1.1 400 ")
