"""Jobs to measure with, and the claim-and-finish loop over Fenceline's functions."""

import json

import asyncpg

BATCH = 500
WORKER_SQL = "select fenceline.register_worker('bench', 3600)"
CLAIM_SQL = "select * from fenceline.claim_jobs($1, 'default', $2)"
FINISH_SQL = "select * from fenceline.finish_attempts($1, $2)"
ENQUEUE_SQL = "select * from fenceline.enqueue_many('noop', $1::json[])"


def args_of(size: int) -> str:
    """A JSON object of exactly so many bytes."""
    frame = json.dumps({"path": "", "number": 12345})
    text = json.dumps({"path": "x" * (size - len(frame)), "number": 12345})
    assert len(text) == size
    return text


async def enqueue(connection: asyncpg.Connection, count: int, args: str) -> None:
    await connection.fetchrow(ENQUEUE_SQL, [args] * count)


async def drain(connection: asyncpg.Connection, worker_id: int, count: int) -> None:
    """Claim and finish exactly so many jobs, in batches."""
    done = 0
    while done < count:
        rows = await connection.fetch(CLAIM_SQL, worker_id, BATCH)
        refused = await connection.fetch(FINISH_SQL, [row[0] for row in rows], [row[1] for row in rows])
        assert rows
        assert not refused
        done += len(rows)
    assert done == count
