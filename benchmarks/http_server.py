"""Over HTTP: enqueues of 16 clients, and lists by each single filter in a history of a million jobs.

The server is a process of its own, as `fenceline server` runs it. The clients speak HTTP/1.1 by hand on kept
connections, because a Python client library would cost more than the server.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import asyncpg

from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline.model.secret import new_token

CLIENTS = 16
ENQUEUE_TARGET = 1000
LIST_TARGET_MS = 100
#: As many finished jobs, of which a thousandth is rare in every field.
HISTORY = 1_000_000

FILL_SQL = """
insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, labels, args, created_by)
select fenceline.id_at(now() - ($1::integer - i) * interval '0.2 seconds') + (i & 4194303), 0, 3, s.shade, 'default',
       s.shade, jsonb_build_object('team', s.shade), '{"path": "s3://bucket/somewhere"}', s.shade
from generate_series(1, $1::integer) i
cross join lateral (select case when i % 1000 = 7 then 'rare' else 'common' end as shade) s
"""
END_SQL = """
insert into fenceline.history (job_id, ended_at, token, claimed_at, worker_id, attempt_id, number, final, outcome)
select j.id, fenceline.id_time(j.id) + interval '1 second', 4294967297, fenceline.id_time(j.id), 1, gen_random_uuid(),
       1, true, case when j.kind = 'rare' then 'failed' else 'succeeded' end
from fenceline.job j
"""
FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"status": "succeeded"},
    {"status": "failed"},
    {"status": "queued"},
    {"kind": "common"},
    {"kind": "rare"},
    {"kind": "absent"},
    {"tenant": "rare"},
    {"label": "team:rare"},
    {"lane": "default"},
)


class Client:
    """One kept connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader = reader
        self._writer = writer
        self._token = token

    @classmethod
    async def open(cls, port: int, token: str) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port), token)

    async def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def server(dsn: str) -> AsyncIterator[int]:
    """The port of a server process."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "fenceline"), "server", "--port", "0",
        env=os.environ | {"FENCELINE_DSN": dsn}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = b""
        while b"listens" not in line:
            line = await process.stdout.readline()
            assert line, "the server did not start"
        yield int(line.rsplit(b":", 1)[1])
    finally:
        process.terminate()
        await process.wait()


async def admin_token(connection: asyncpg.Connection) -> str:
    token, token_hash = new_token()
    await connection.execute("select fenceline.create_token($1, 'platform_admin')", token_hash)
    return token


async def measure_enqueue(connection: asyncpg.Connection, port: int, token: str, size: Size) -> Result:
    each = 100 if size.quick else 600
    body = json.dumps({"kind": "noop", "args": {"path": "s3://bucket/some/where", "number": 12345}}).encode()
    clients = [await Client.open(port, token) for _ in range(CLIENTS)]

    async def work(client: Client, count: int) -> None:
        for _ in range(count):
            status, _answer = await client.request("POST", "/v1/jobs", body)
            assert status == 202

    await asyncio.gather(*(work(client, 20) for client in clients))
    before = await connection.fetchval("select count(*) from fenceline.job")
    started = time.perf_counter()
    await asyncio.gather(*(work(client, each) for client in clients))
    seconds = time.perf_counter() - started
    assert await connection.fetchval("select count(*) from fenceline.job") - before == CLIENTS * each
    for client in clients:
        client.close()
    return Result(
        measurement=f"enqueue over HTTP, {CLIENTS} clients, one server process",
        unit="jobs/s",
        ours=CLIENTS * each / seconds,
        target=ENQUEUE_TARGET,
    )


async def measure_lists(connection: asyncpg.Connection, port: int, token: str, size: Size) -> list[Result]:
    count = HISTORY // 10 if size.quick else HISTORY
    await connection.execute("set synchronous_commit = off")
    await connection.execute(FILL_SQL, count)
    await connection.execute(END_SQL)
    await connection.execute("vacuum analyze fenceline.job, fenceline.history")
    client = await Client.open(port, token)
    results = []
    for filters in FILTERS:
        path = f"/v1/jobs?{urlencode(filters)}"
        milliseconds = []
        for _ in range(10 if size.quick else 100):
            started = time.perf_counter()
            status, _answer = await client.request("GET", path)
            milliseconds.append((time.perf_counter() - started) * 1000)
            assert status == 200
        results.append(
            Result(
                measurement=f"list over HTTP, {count:,} jobs, {urlencode(filters) or 'no filter'}, p99",
                unit="ms",
                ours=sorted(milliseconds)[int(len(milliseconds) * 0.99)],
                target=LIST_TARGET_MS,
                bound="at most",
            )
        )
    client.close()
    return results


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    token = await admin_token(connection)
    async with server(await dsn_of(connection)) as port:
        return [
            await measure_enqueue(connection, port, token, size),
            *await measure_lists(connection, port, token, size),
        ]
