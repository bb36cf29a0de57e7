"""Several database sessions that meet at exact points: transactions left open, and waits for locks that are seen in
pg_stat_activity instead of hoped for with a sleep.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import UUID

import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Connect: TypeAlias = Callable[[], Awaitable[Connection]]
Step: TypeAlias = Callable[[Connection], Coroutine[Any, Any, Any]]

IsolatedPool: TypeAlias = Literal["read_committed", "repeatable_read", "serializable"]
ISOLATIONS: tuple[IsolatedPool, ...] = ("read_committed", "repeatable_read", "serializable")

POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Attempt:
    job_id: int
    attempt_id: UUID
    token: int
    number: int


@asynccontextmanager
async def sessions(dsn: str) -> AsyncIterator[Connect]:
    """A function that opens connections, all of them gone at the end."""
    opened: list[Connection] = []

    async def connect() -> Connection:
        opened.append(await asyncpg.connect(dsn))
        return opened[-1]

    try:
        yield connect
    finally:
        for connection in opened:
            connection.terminate()  # it may still wait for a lock
        await asyncio.sleep(0)  # their transports close in the next turn of the loop


async def many(connect: Connect, count: int) -> list[Connection]:
    return [await connect() for _ in range(count)]


# The functions as a worker, a producer and an operator call them ----------------------------------------


async def register(connection: Connection, *, lease_seconds: float = 600) -> int:
    number = await connection.fetchval("select fenceline.register_worker('w', $1)", lease_seconds)
    assert isinstance(number, int)
    return number


async def enqueue(connection: Connection, **options: Any) -> int:
    return (await enqueue_or_find(connection, **options))[0]


async def enqueue_or_find(connection: Connection, **options: Any) -> tuple[int, bool]:
    row = await connection.fetchrow(
        "select job_id, created from fenceline.enqueue('work', '{}', $1)", json.dumps(options)
    )
    assert row is not None
    return row["job_id"], row["created"]


async def claim(connection: Connection, worker: int, *, lane: str = "default", limit: int = 1) -> list[Attempt]:
    text = "select job_id, attempt_id, token, number from fenceline.claim_jobs($1, $2, $3)"
    return [Attempt(**row) for row in await connection.fetch(text, worker, lane, limit)]


async def claim_one(connection: Connection, worker: int, *, limit: int = 1) -> Attempt:
    claimed = await claim(connection, worker, limit=limit)
    assert len(claimed) == 1, claimed
    return claimed[0]


async def finish(connection: Connection, attempt: Attempt, outcome: str = "succeeded", delay: float = 0) -> str:
    text = "select fenceline.finish_attempt($1, $2, $3, p_delay => $4)"
    verdict = await connection.fetchval(text, attempt.job_id, attempt.attempt_id, outcome, delay)
    assert isinstance(verdict, str)
    return verdict


async def set_lane(connection: Connection, lane: str, **changes: Any) -> None:
    await connection.execute("select fenceline.set_lane($1, $2)", lane, json.dumps(changes))


async def maintain(connection: Connection) -> None:
    await connection.execute("select fenceline.maintain(0)")


async def end_lease(connection: Connection, worker: int) -> None:
    """What time does to a worker that is not heard of."""
    await connection.execute(
        "update fenceline.worker set lease_until = now() - interval '1 minute' where id = $1", worker
    )


# What came of it ------------------------------------------------------------------------------------------


async def status(connection: Connection, job_id: int) -> str | None:
    """The job's status; None when it is nowhere. Fails when it is in two places."""
    found = await connection.fetch("select status from fenceline.jobs where job_id = $1", job_id)
    assert len(found) <= 1, f"job {job_id} is in more than one place: {found}"
    return found[0]["status"] if found else None


async def count(connection: Connection, table: str, where: str = "true") -> int:
    number = await connection.fetchval(f"select count(*) from fenceline.{table} where {where}")
    assert isinstance(number, int)
    return number


async def refusal(call: Awaitable[Any]) -> str | None:
    """The SQLSTATE a call is refused with, or None when it is not."""
    try:
        await call
    except asyncpg.PostgresError as error:
        return error.sqlstate
    return None


# Meeting --------------------------------------------------------------------------------------------------


async def waits_or_ends(observer: Connection, connection: Connection, task: asyncio.Task[Any]) -> bool:
    """Until the task's statement waits for a lock (True) or is done (False)."""
    pid = connection.get_server_pid()
    while not task.done():
        waiting = await observer.fetchval("select wait_event_type = 'Lock' from pg_stat_activity where pid = $1", pid)
        if waiting:
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False


async def without_waiting(observer: Connection, connection: Connection, step: Coroutine[Any, Any, Any]) -> Any:
    """What the step gives, whose statements may wait for no lock."""
    task = asyncio.create_task(step)
    waited = await waits_or_ends(observer, connection, task)
    answer = await task
    assert not waited, "it waited for a lock"
    return answer


async def overlap(connect: Connect, first: Step, second: Step) -> tuple[Any, Any, bool]:
    """Run `first` and leave its transaction open, start `second`, commit the first once the second waits or is done.

    Returns both answers (an error of the database is an answer), and whether the second had to wait.
    """
    one, two, observer = await many(connect, 3)
    transaction = one.transaction()
    await transaction.start()
    answer = await first(one)
    task = asyncio.create_task(_answer(second(two)))
    waited = await waits_or_ends(observer, two, task)
    await transaction.commit()
    return answer, await task, waited


async def _answer(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except asyncpg.PostgresError as error:
        return error.sqlstate
