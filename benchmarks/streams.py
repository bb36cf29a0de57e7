"""1,000 people watch a job each while 200 statuses change per second: how soon they see it, and what it costs."""

import asyncio
import json
import os
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median, quantiles

import asyncpg
import psutil

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.client_waiting import transactions
from benchmarks.measure import Result, Size
from fenceline.database import calls
from fenceline.model.public_id import format_id
from fenceline.model.secret import new_token
from fenceline.server.run import allow_many_files

CHANGES_PER_SECOND = 200
TICK_SECONDS = 0.05
WANTED = ["queued", "claimed", "running", "succeeded"]
DELIVERY_TARGET_MS = 200
MEMORY_TARGET_MB = 400
#: 40 looks, a poll and a check of tokens, renewals and the canary; beside them the changes themselves.
STATEMENTS_TARGET = 60
LISTENERS_SQL = (
    "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%' "
    "and backend_type = 'client backend'"
)


@dataclass(slots=True)
class Board:
    """What was done when, and what was seen when."""

    done: dict[tuple[str, str], float] = field(default_factory=dict)
    seen: dict[str, list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))
    statements: list[float] = field(default_factory=list)  # how long the changes themselves took
    connected: int = 0

    def note(self, job_ids: list[str], status: str, at: float) -> None:
        self.done |= {(job_id, status): at for job_id in job_ids}

    def delays(self) -> list[float]:
        return [
            at - self.done[job_id, status]
            for job_id, seen in self.seen.items()
            for status, at in seen
            if (job_id, status) in self.done
        ]

    def missed(self) -> int:
        """Statuses that did not come, came twice, or came in another order."""
        return sum([status for status, _at in seen] != WANTED for seen in self.seen.values())

    def endless(self, count: int) -> int:
        """Streams, of so many, whose last status was not the job's end."""
        return count - sum(seen[-1][0] == WANTED[-1] for seen in self.seen.values())


async def watch(port: int, token: str, job_id: str, board: Board) -> None:
    """Read one stream to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"GET /v1/jobs/{job_id}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(request.encode())
    event = b""
    try:
        while line := await reader.readline():
            if line.startswith(b"event: "):
                event = line[7:].strip()
            elif line.startswith(b"data: ") and event == b"status":
                status = json.loads(line[6:])["status"]
                board.seen[job_id].append((status, time.perf_counter()))
                board.connected += status == "queued"
            elif line.startswith(b"0\r"):
                return
    finally:
        writer.close()


async def change(connection: asyncpg.Connection, worker_id: int, board: Board, count: int) -> None:
    """Every job is claimed, started and finished; so many statuses per second."""
    batch = int(CHANGES_PER_SECOND * TICK_SECONDS)
    due = time.perf_counter()
    attempts: list[tuple[int, object]] = []
    for status in WANTED[1:]:
        for start in range(0, count, batch):
            due += TICK_SECONDS
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            at = time.perf_counter()
            if status == "claimed":
                rows = await connection.fetch(
                    "select job_id, attempt_id from fenceline.claim_jobs($1, 'default', $2)", worker_id, batch
                )
                attempts += [(row["job_id"], row["attempt_id"]) for row in rows]
            verb = {"running": "start_attempts", "succeeded": "finish_attempts"}.get(status)
            these = attempts[start : start + batch]
            ids = [job_id for job_id, _attempt in these]
            if verb is not None:
                await connection.fetch(
                    f"select * from fenceline.{verb}($1, $2)", ids, [attempt for _job_id, attempt in these]
                )
            board.note([format_id(job_id) for job_id in ids], status, at)
            board.statements.append(time.perf_counter() - at)


async def start_server(dsn: str, port: int) -> asyncio.subprocess.Process:
    environment = {**os.environ, "FENCELINE_DSN": dsn}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from fenceline.cli import main; main()", "server", "--port", str(port), env=environment,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with asyncio.timeout(60):
        while process.returncode is None:
            try:
                _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return process
    raise RuntimeError("the server did not start")


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = 100 if size.quick else 1000
    allow_many_files()
    worker_id = await connection.fetchval(jobs.WORKER_SQL)
    token, token_hash = new_token()
    call = calls.tokens.create_token(
        token_hash, role="operator", tenant=None, name="bench", expires_at=None, actor=None
    )
    await connection.fetch(call.sql, *call.parameters)
    made = await connection.fetchval("select job_ids from fenceline.enqueue_many('noop', $1)", ["{}"] * count)
    port = 18321 + os.getpid() % 10_000
    process = await start_server(await dsn_of(connection), port)
    board = Board()
    try:
        server = psutil.Process(process.pid)
        watchers = [asyncio.create_task(watch(port, token, format_id(job_id), board)) for job_id in made]
        async with asyncio.timeout(120):
            while board.connected < count:  # noqa: ASYNC110 - counted by others
                await asyncio.sleep(0.05)
        await asyncio.sleep(2)
        listeners = await connection.fetchval(LISTENERS_SQL)
        before, started = await transactions(connection), time.perf_counter()
        await change(connection, worker_id, board, count)
        async with asyncio.timeout(120):
            await asyncio.gather(*watchers)
        memory = server.memory_info().rss / 1e6
        after, ended = await transactions(connection), time.perf_counter()
    finally:
        process.terminate()
        await process.wait()
    delays = [delay * 1000 for delay in board.delays()]
    changes = 3 * count / (CHANGES_PER_SECOND * TICK_SECONDS)  # statements of this measurement itself
    return [
        Result(
            measurement=f"a status reaches its watcher, p99 of {count:,} streams, 200 changes/s",
            unit="ms",
            ours=quantiles(delays, n=100)[98],
            target=DELIVERY_TARGET_MS,
            bound="at most",
            note=f"median {median(delays):,.0f} ms, p95 {quantiles(delays, n=20)[18]:,.0f} ms, "
            f"{len(delays):,} deliveries; "
            f"the change itself included: p99 {quantiles(board.statements, n=100)[98] * 1000:,.0f} ms",
        ),
        Result(measurement="streams that missed a status", unit="", ours=board.missed(), target=0, bound="at most"),
        Result(
            measurement="streams that missed the end", unit="", ours=board.endless(count), target=0, bound="at most"
        ),
        Result(measurement="listening connections", unit="", ours=listeners, target=1, bound="at most"),
        Result(
            measurement=f"memory of the server, {count:,} streams",
            unit="MB",
            ours=memory,
            target=MEMORY_TARGET_MB,
            bound="at most",
        ),
        Result(
            measurement="statements of the server meanwhile",
            unit="per second",
            ours=(after - before - changes - 2) / (ended - started),
            target=STATEMENTS_TARGET,
            bound="at most",
        ),
    ]
