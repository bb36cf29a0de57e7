"""10,000 jobs by one call of enqueue_each, each with options of its own, beside one call of enqueue_many without any.

Per kind of option: the time of a call beside that of the plain one, and the WAL of a job.
"""

import json
import time
from collections.abc import Callable
from statistics import median

import asyncpg

from benchmarks import jobs
from benchmarks.measure import Result, Size
from benchmarks.wal import wal_written

COUNT = 10_000
PLAIN_SQL = "select from fenceline.enqueue_many('noop', $1::json[])"
EACH_SQL = "select from fenceline.enqueue_each('noop', $1::json[], $2::json[])"

OWN: dict[str, Callable[[str], dict[str, object]]] = {
    "priority and labels": lambda own: {"priority": hash(own) % 100, "labels": {"path": own}},
    "run_in": lambda own: {"run_in": 3600 + hash(own) % 100},
    "key": lambda own: {"key": own},
    "dedupe_key": lambda own: {"dedupe_key": own, "autocommit": True},
    "idempotency_key": lambda own: {"idempotency_key": own},
    "key, dedupe_key, priority and expires_at": lambda own: {
        "key": own,
        "dedupe_key": own,
        "priority": hash(own) % 100,
        "expires_at": "2199-01-01T00:00:00Z",
    },
}


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    args = [jobs.args_of(100)] * COUNT
    rounds = size.rounds(11)
    results = []
    for name, own in OWN.items():
        plain, each, again, wal = [], [], [], []
        for number in range(rounds):
            options = [json.dumps(own(f"{name} {number} {n}")) for n in range(COUNT)]
            await connection.execute("checkpoint")
            plain.append(await _seconds(connection, PLAIN_SQL, args))
            before, _ = await wal_written(connection)
            each.append(await _seconds(connection, EACH_SQL, args, options))
            wal.append(((await wal_written(connection))[0] - before) / COUNT)
            if "dedupe" in name or "idempotency" in name:
                again.append(await _seconds(connection, EACH_SQL, args, options))
        results.append(
            Result(
                measurement=f"10,000 jobs, each with {name} / plain ones",
                unit="jobs/s",
                ours=COUNT / median(each),
                bare=COUNT / median(plain),
                ratio=median(p / e for p, e in zip(plain, each, strict=True)),
                note=f"{median(each):.2f} s, {median(wal):,.0f} B of WAL a job"
                + (f"; sent again: {median(again):.2f} s" if again else ""),
            )
        )
    return results


async def _seconds(connection: asyncpg.Connection, sql: str, *values: object) -> float:
    started = time.perf_counter()
    await connection.execute(sql, *values)
    return time.perf_counter() - started
