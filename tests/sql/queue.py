"""The SQL functions as a test likes to call them: one object, one worker, short verbs.

Everything here is a thin call of a function of the schema `fenceline`; nothing knows a rule of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
from tests.sql.clock import RAN_MEANWHILE, clock_sql

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Json: TypeAlias = dict[str, Any]

LIVE_STATUSES = ("queued", "scheduled", "waiting", "awaiting_approval", "claimed", "running")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One row that claim_jobs returned."""

    job_id: int
    attempt_id: UUID
    token: int
    number: int
    kind: str
    args: Json
    tenant: str
    priority: int
    seq: int
    max_attempts: int
    timeout_seconds: float | None
    alone: bool
    more: Json | None


class Queue:
    """A database with the state machine, a clock that stands until moved, and one registered worker."""

    def __init__(self, connection: Connection, worker: int) -> None:
        self.connection = connection
        self.worker = worker

    # Any function ------------------------------------------------------------------------------------------

    async def rows(self, function: str, *values: Any, **named: Any) -> list[asyncpg.Record]:
        """Rows of `fenceline.<function>(values…, p_name => value…)`."""
        given = [f"${n}" for n in range(1, len(values) + 1)]
        given += [f"p_{name} => ${n}" for n, name in enumerate(named, start=len(values) + 1)]
        sql = f"select * from fenceline.{function}({', '.join(given)})"
        return await self.connection.fetch(sql, *values, *named.values())

    async def call(self, function: str, *values: Any, **named: Any) -> Any:
        """The first column of the first row of a function."""
        rows = await self.rows(function, *values, **named)
        return rows[0][0] if rows else None

    async def sql(self, text: str, *values: Any) -> Any:
        """The first column of the first row of any statement."""
        return await self.connection.fetchval(text, *values)

    # Enqueue -----------------------------------------------------------------------------------------------

    async def enqueue(self, kind: str = "work", args: Json | None = None, **options: Any) -> int:
        """The internal id of a new (or found) job."""
        return int((await self.made(kind, args, **options))["job_id"])

    async def made(self, kind: str = "work", args: Json | None = None, **options: Any) -> asyncpg.Record:
        """All that enqueue returns: id, job_id, created."""
        return (await self.rows("enqueue", kind, args or {}, options))[0]

    # Workers -----------------------------------------------------------------------------------------------

    async def register(self, name: str = "worker", lease_seconds: float = 30, **options: Any) -> int:
        return int(await self.call("register_worker", name, lease_seconds, **options))

    async def claim(self, limit: int = 1, lane: str = "default", **options: Any) -> list[Attempt]:
        """Claim for the queue's own worker, or for `worker`."""
        worker = options.pop("worker", self.worker)
        return [Attempt(**row) for row in await self.rows("claim_jobs", worker, lane, limit, **options)]

    async def claim_one(self, lane: str = "default", **options: Any) -> Attempt:
        (attempt,) = await self.claim(1, lane, **options)
        return attempt

    async def claimed_ids(self, limit: int = 1, lane: str = "default", **options: Any) -> list[int]:
        return [attempt.job_id for attempt in await self.claim(limit, lane, **options)]

    async def finish(self, attempt: Attempt, outcome: str = "succeeded", **options: Any) -> str:
        """accepted, already or stale."""
        return str(await self.call("finish_attempt", attempt.job_id, attempt.attempt_id, outcome, **options))

    async def run(self, job_id: int, outcome: str = "succeeded", lane: str = "default", **options: Any) -> Attempt:
        """Claim the next job, which must be this one, and finish it."""
        attempt = await self.claim_one(lane)
        assert attempt.job_id == job_id
        assert await self.finish(attempt, outcome, **options) == "accepted"
        return attempt

    async def finished(self, kind: str = "work", outcome: str = "succeeded", **options: Any) -> int:
        """A job that has been enqueued, claimed and finished."""
        job = await self.enqueue(kind, **options)
        await self.run(job, outcome, lane=options.get("lane", "default"))
        return job

    # What is there -----------------------------------------------------------------------------------------

    async def job(self, job_id: int) -> Json:
        """A job's row of the view `jobs`, as JSON."""
        row: Json = await self.call("get_job", job_id)
        return row

    async def status(self, job_id: int) -> str:
        """The status, with what the job waits for behind a colon: "queued", "waiting:key"."""
        row = await self.job(job_id)
        return f"{row['status']}:{row['waiting_for']}" if row["waiting_for"] else str(row["status"])

    async def statuses(self, job_ids: Sequence[int]) -> list[str]:
        return [await self.status(job_id) for job_id in job_ids]

    async def attempts(self, job_id: int) -> list[asyncpg.Record]:
        return await self.rows("list_attempts", job_id)

    async def events(self, subject: str | None = None) -> list[asyncpg.Record]:
        """The audit, newest first."""
        return await self.rows("list_events", subject)

    async def public_id(self, job_id: int) -> str:
        return str(await self.call("public_id", job_id))

    async def contents(self) -> dict[str, str]:
        """How many rows every table has, and a checksum of them: equal if and only if nothing has changed."""
        tables = await self.connection.fetch(
            "select relname from pg_class where relnamespace = 'fenceline'::regnamespace and relkind = 'r'"
        )
        return {
            table["relname"]: await self.sql(
                f"select count(*) || ' ' || md5(coalesce(string_agg(t::text, '|' order by t::text), '')) "
                f'from fenceline."{table["relname"]}" t'
            )
            for table in tables
        }

    # Operators and time ------------------------------------------------------------------------------------

    async def set_lane(self, name: str, **changes: Any) -> Json:
        lane: Json = await self.call("set_lane", name, changes)
        return lane

    async def maintain(self) -> Json:
        """One round of what every worker does all the time; the moved clock decides what is due."""
        done: Json = await self.call("maintain", 0)
        return done

    async def move_clock(self, seconds: float) -> None:
        """Time passes, and somebody has looked all the while: maintenance last ran a second ago."""
        await self.step_clock(seconds)
        await self.connection.execute(RAN_MEANWHILE)

    async def step_clock(self, seconds: float) -> None:
        """The clock is set, and no time passes."""
        await self.connection.execute("update public.test_clock set now = now + make_interval(secs => $1)", seconds)

    async def at(self, seconds: float) -> str:
        """The moment so many seconds from now, as options spell it."""
        return str(
            await self.sql(
                "select to_char((fenceline.clock() + make_interval(secs => $1)) at time zone 'UTC', "
                """'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
                seconds,
            )
        )


async def open_queue(connection: Connection) -> Queue:
    """A queue with a clock that stands, and a worker whose lease is a day, so that a test may move the clock."""
    await connection.execute(clock_sql())
    await use_json(connection)
    queue = Queue(connection, worker=0)
    queue.worker = await queue.register(lease_seconds=86400)
    return queue


async def use_json(connection: Connection) -> None:
    """JSON values travel as Python objects on this connection."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
