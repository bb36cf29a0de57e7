"""Producers and workers of 0.1.0: the very statements that release sends, from sessions that stay open.

A call that fails is not sent again, because 0.1.0 would not; one that waits too long for a lock fails.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

import asyncpg
from tests.support.patience import eventually

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

ENDED = "FL011"  # of a cancel: the job has ended

ENQUEUE = "select job_id, created from fenceline.enqueue($1, cast($2 as json), cast($3 as json), $4, cast($5 as json))"
ENQUEUE_MANY = (
    "select job_ids, created from fenceline.enqueue_many("
    "$1, cast($2 as json[]), cast($3 as json), $4, cast($5 as json))"
)
ENQUEUE_JOBS = "select job_ids, created from fenceline.enqueue_jobs(cast($1 as json), $2)"
GET_JOB = "select fenceline.get_job($1)"
LIST_JOBS = "select jobs, next_cursor from fenceline.list_jobs($1, $2, $3, $4, cast($5 as jsonb), $6, $7, null, $8, $9)"
OUTCOMES = "select job_id, status, result, error, errors from fenceline.outcomes($1)"
CANCEL_JOB = "select fenceline.cancel_job($1, $2, $3, $4, $5)"
LANES = (
    "select name, kinds, slots, in_use, depth, oldest_age_seconds, poll_interval_ms, stale_timeout_seconds, "
    "on_stale, enabled, rate_per_second, burst, fair, ageing_seconds, default_priority "
    "from fenceline.lanes($1)"
)
DEPTH = "select fenceline.depth($1)"

DECLARE_KINDS = "select fenceline.declare_kinds(cast($1 as jsonb))"
REGISTER_WORKER = "select fenceline.register_worker($1, $2, $3, $4, $5, $6, $7)"
WORKER_LANES = (
    "select name, slots, poll_interval_ms, enabled, limited, suspects, ready, wanted, expected "
    "from fenceline.worker_lanes($1, $2)"
)
CLAIM = (
    "select job_id, attempt_id, token, number, kind, args, tenant, priority, seq, max_attempts, timeout_seconds, "
    "alone, more from fenceline.claim_jobs($1, $2, $3, $9, $4, $5, $6, $7, $8)"
)
START = "select job_id, attempt_id from fenceline.start_attempts($1, $2, $3)"
REPORT = "select attempt_id from fenceline.report_attempts($1, $2, cast($3 as jsonb[]), cast($4 as jsonb[]))"
CHECK = "select attempt_id, word, grace_seconds from fenceline.check_attempts($1, $2)"
RECORD_STEP = "select fenceline.record_step($1, $2, $3, $4, cast($5 as jsonb), cast($6 as jsonb), $7)"
SAVE_CHECKPOINT = "select fenceline.save_checkpoint($1, $2, cast($3 as jsonb))"
ATTEMPT_START = "select fenceline.attempt_start($1)"
FINISH = "select attempt_id, verdict from fenceline.finish_attempts($1, $2, $3, $4, $5, $6, $7, $8)"
HEARTBEAT = "select worker_id, attempt_id, word from fenceline.heartbeat($1)"
MAINTAIN = "select fenceline.maintain($1)"
UPKEEP = "select fenceline.upkeep($1)"
STOP_WORKER = "select fenceline.stop_worker($1, $2)"


@dataclass
class Traffic:
    """What happened so far: how many calls, which failed, how long the slowest took."""

    dsn: str
    lock_seconds: float
    calls: int = 0
    finished: int = 0
    enqueued: int = 0
    slowest: tuple[float, str] = (0.0, "")
    failures: list[str] = field(default_factory=list)
    stopping: bool = False

    async def fetch(self, connection: Connection, sql: str, *parameters: Any) -> list[asyncpg.Record]:
        started = time.monotonic()
        try:
            return await connection.fetch(sql, *parameters)
        except asyncpg.PostgresError as error:
            if sql == UPKEEP and isinstance(error, asyncpg.LockNotAvailableError):
                return []  # 0.1.0's upkeep waits 100 ms for a lock, and comes again in a minute
            if sql == CANCEL_JOB and error.sqlstate == ENDED:
                return []  # the worker was quicker
            self.failures.append(f"{type(error).__name__}: {error} ({sql})")
            return []
        finally:
            self.calls += 1
            self.slowest = max(self.slowest, (time.monotonic() - started, sql))

    async def connect(self) -> Connection:
        settings = {"lock_timeout": f"{self.lock_seconds * 1000:.0f}", "application_name": "fenceline"}
        connection: Connection = await asyncpg.connect(self.dsn, server_settings=settings)
        return connection


@asynccontextmanager
async def traffic_of(dsn: str, *, lock_seconds: float, producers: int = 2, workers: int = 2) -> AsyncIterator[Traffic]:
    """Run them for as long as the block lasts; leaving lets every call under way come to its end."""
    traffic = Traffic(dsn, lock_seconds)
    loops = [_watch, _maintain]
    loops += [(_produce, _produce_in_transactions)[number % 2] for number in range(producers)]
    loops += [_work] * workers
    tasks = [asyncio.create_task(loop(traffic)) for loop in loops]
    try:
        yield traffic
    finally:
        traffic.stopping = True
        await asyncio.gather(*tasks)


@asynccontextmanager
async def _session(traffic: Traffic) -> AsyncIterator[Connection]:
    connection = await traffic.connect()
    try:
        yield connection
    finally:
        await connection.close()


async def _produce(traffic: Traffic) -> None:
    turn = 0
    async with _session(traffic) as connection:
        while not traffic.stopping:
            turn += 1
            for options in (
                {},
                {"labels": {"team": "a"}, "priority": 3},
                {"key": f"key {turn % 5}", "key_limit": 2},
                {"dedupe_key": f"dedupe {turn % 7}"},
                {"idempotency_key": f"{uuid4()}", "run_at": "2026-01-01T00:00:00Z"},
                {"expires_at": "2199-01-01T00:00:00Z", "max_attempts": 5},
            ):
                rows = await traffic.fetch(connection, ENQUEUE, "work", "{}", json.dumps(options), None, None)
                traffic.enqueued += sum(row["created"] for row in rows)
            args = ["{}"] * 20
            rows = await traffic.fetch(connection, ENQUEUE_MANY, "work", args, "{}", None, None)
            traffic.enqueued += sum(len(row["job_ids"]) for row in rows)


async def _produce_in_transactions(traffic: Traffic) -> None:
    """With writes of the user's own, and a transaction that stays open for a moment."""
    async with _session(traffic) as connection:
        while not traffic.stopping:
            async with connection.transaction():
                first = await traffic.fetch(connection, ENQUEUE, "work", "{}", "{}", "somebody", None)
                if not first:
                    raise AssertionError(traffic.failures)
                after = json.dumps([{"kind": "work", "args": {}, "after": [first[0]["job_id"]]}])
                await traffic.fetch(connection, ENQUEUE_JOBS, after, None)
                traffic.enqueued += 2
                await asyncio.sleep(0.02)


async def _watch(traffic: Traffic) -> None:
    async with _session(traffic) as connection:
        while not traffic.stopping:
            page = await traffic.fetch(
                connection, LIST_JOBS, ["queued"], ["work"], None, None, None, None, None, 20, None
            )
            await traffic.fetch(connection, LANES, None)
            await traffic.fetch(connection, DEPTH, None)
            await traffic.fetch(connection, "select count(*) from fenceline.lane_depth")
            await traffic.fetch(connection, "select id, kind, status from fenceline.jobs limit 5")
            rows = await traffic.fetch(connection, ENQUEUE, "watched", "{}", "{}", None, None)
            for row in rows if page else ():
                traffic.enqueued += 1
                await traffic.fetch(connection, GET_JOB, row["job_id"])
                await traffic.fetch(connection, OUTCOMES, [row["job_id"]])
                await traffic.fetch(connection, CANCEL_JOB, row["job_id"], "somebody", None, False, None)
            await asyncio.sleep(0.01)


async def _maintain(traffic: Traffic) -> None:
    async with _session(traffic) as connection:
        while not traffic.stopping:
            await traffic.fetch(connection, MAINTAIN, 0.05)
            await traffic.fetch(connection, UPKEEP, 0.2)
            await asyncio.sleep(0.05)


async def work_once(connection: Connection) -> Traffic:
    """One job, from its enqueue to its end."""
    traffic = Traffic("", 0.0)
    await traffic.fetch(connection, ENQUEUE, "work", "{}", '{"priority": 9}', None, None)
    worker = await _register(traffic, connection)
    await _run(traffic, connection, await _claim(traffic, connection, worker, 1))
    await traffic.fetch(connection, STOP_WORKER, worker, None)
    return traffic


async def _work(traffic: Traffic) -> None:
    async with _session(traffic) as connection:
        worker = await _register(traffic, connection)
        while not traffic.stopping:
            await traffic.fetch(connection, WORKER_LANES, None, worker)
            jobs = await _claim(traffic, connection, worker, 10)
            await _run(traffic, connection, jobs)
            await traffic.fetch(connection, HEARTBEAT, [worker])
            if not jobs:
                await asyncio.sleep(0.01)
        await traffic.fetch(connection, STOP_WORKER, worker, None)


async def _register(traffic: Traffic, connection: Connection) -> int:
    kinds = {"work": {"max_attempts": 3}, "watched": {}}
    await traffic.fetch(connection, DECLARE_KINDS, json.dumps(kinds))
    rows = await traffic.fetch(connection, REGISTER_WORKER, "worker", 3600.0, list(kinds), None, "host", 1, "0.1.0")
    return int(rows[0][0])


async def _claim(traffic: Traffic, connection: Connection, worker: int, limit: int) -> list[asyncpg.Record]:
    return await traffic.fetch(connection, CLAIM, worker, "default", limit, uuid4(), 0.5, False, None, None, None)


async def _run(traffic: Traffic, connection: Connection, jobs: list[asyncpg.Record]) -> None:
    if not jobs:
        return
    ids, attempts = [job["job_id"] for job in jobs], [job["attempt_id"] for job in jobs]
    first, attempt = ids[0], attempts[0]
    await traffic.fetch(connection, START, ids, attempts, [0.01] * len(ids))
    await traffic.fetch(connection, ATTEMPT_START, first)
    await traffic.fetch(connection, RECORD_STEP, first, attempt, "load", None, "{}", None, 0.01)
    await traffic.fetch(connection, SAVE_CHECKPOINT, first, attempt, '{"at": 1}')
    line = json.dumps([{"message": "hello", "level": "info"}])
    progress = json.dumps({"phase": "load", "progress": {"done": 1}})
    await traffic.fetch(connection, REPORT, ids, attempts, [line] * len(ids), [progress] * len(ids))
    await traffic.fetch(connection, CHECK, ids, attempts)
    outcomes = ["failed" if number % 10 == 9 else "succeeded" for number in range(len(ids))]
    size = len(ids)
    refused = await traffic.fetch(
        connection, FINISH, ids, attempts, outcomes, [None] * size, [None] * size, None, [0.01] * size, [0.01] * size
    )
    traffic.failures += [f"a finish was {row['verdict']}" for row in refused]
    traffic.finished += size - len(refused)


async def until(condition: Callable[[], bool], traffic: Traffic) -> None:
    async def met() -> bool:
        return condition()

    await eventually(met, "the traffic goes on", lambda: traffic)
