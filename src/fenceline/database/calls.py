"""The operations of the state machine as values: SQL text, parameters, and how to read the answer.

A `Call` knows nothing of drivers and does no I/O, so the async client, its sync twin, workers and a caller's own
connection all run the same ones.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from fenceline.model.job import JobPage, JobRecord, Lane, LockRecord, LogLine, Outcome
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.status import Status

T = TypeVar("T")
# Whatever the driver's rows are: read by position, and unpacked.
Row = Any


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One statement. Parameters are `$1`, `$2` … in `sql`; `repeatable` says that running it twice is harmless."""

    sql: str
    parameters: tuple[Any, ...]
    decode: Callable[[Sequence[Row]], T]
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to an enqueue: which job, and whether this call made it."""

    job_id: int
    created: bool


def from_json(value: Any) -> Any:
    # asyncpg hands JSON over as text, psycopg as objects.
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except ValueError:  # Python reads no integer of more than 4300 digits, and other languages may have stored one
        return json.loads(value, parse_int=_any_integer)


def _any_integer(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


# What most answers are: nothing, one value, one value a row.


def nothing(_rows: Sequence[Row]) -> None:
    return None


def scalar(rows: Sequence[Row]) -> Any:
    return rows[0][0]


def column(rows: Sequence[Row]) -> list[Any]:
    return [row[0] for row in rows]


def enqueue(
    kind: str, args: str, options: str, *, actor: str | None, defaults: str | None, repeatable: bool
) -> Call[Enqueued]:
    return Call(
        "select job_id, created from fenceline.enqueue($1, cast($2 as json), cast($3 as json), $4, cast($5 as json))",
        (kind, args, options, actor, defaults),
        lambda rows: Enqueued(rows[0][0], rows[0][1]),
        repeatable=repeatable,
    )


def enqueue_many(
    kind: str, args: list[str], options: str, *, actor: str | None, defaults: str | None, repeatable: bool
) -> Call[list[tuple[int, bool]]]:
    """As `enqueue`, with the answers as plain pairs: there may be tens of thousands."""

    def decode(rows: Sequence[Row]) -> list[tuple[int, bool]]:
        job_ids, created = rows[0]
        if created is None:
            return [(job_id, True) for job_id in job_ids or ()]
        return list(zip(job_ids, created, strict=True))

    return Call(
        "select job_ids, created from fenceline.enqueue_many("
        "$1, cast($2 as json[]), cast($3 as json), $4, cast($5 as json))",
        (kind, args, options, actor, defaults),
        decode,
        repeatable=repeatable,
    )


def job_spec(kind: str, args: str, options: str, defaults: str | None, **more: Any) -> dict[str, Any]:
    """One job of `enqueue_jobs`; args, options and defaults are JSON text."""
    spec = {**json.loads(options), "kind": kind, "args": json.loads(args), **more}
    return spec if defaults is None else {**spec, "defaults": json.loads(defaults)}


def enqueue_jobs(specs: Sequence[Mapping[str, Any]], *, actor: str | None) -> Call[list[tuple[int, bool]]]:
    """Jobs of different kinds and options in one statement."""

    def decode(rows: Sequence[Row]) -> list[tuple[int, bool]]:
        job_ids, created = rows[0]
        return list(zip(job_ids, created, strict=True))

    return Call(
        "select job_ids, created from fenceline.enqueue_jobs(cast($1 as json), $2)",
        (json.dumps(list(specs)), actor),
        decode,
    )


def get_job(job_id: int) -> Call[JobRecord | None]:
    def decode(rows: Sequence[Row]) -> JobRecord | None:
        found = from_json(scalar(rows))
        return None if found is None else JobRecord.from_json(found)

    return Call("select fenceline.get_job($1)", (job_id,), decode, repeatable=True)


def list_jobs(
    *,
    statuses: list[str] | None,
    kinds: list[str] | None,
    lanes: list[str] | None,
    tenants: list[str] | None,
    labels: Mapping[str, str] | None,
    created_after: datetime | None,
    created_before: datetime | None,
    limit: int,
    cursor: str | None,
) -> Call[JobPage]:
    def decode(rows: Sequence[Row]) -> JobPage:
        jobs, next_cursor = rows[0]
        return JobPage(
            items=[JobRecord.from_json(row) for row in from_json(jobs)],
            next_cursor=None if next_cursor is None else format_id(next_cursor),
        )

    return Call(
        "select jobs, next_cursor from fenceline.list_jobs($1, $2, $3, $4, cast($5 as jsonb), $6, $7, null, $8, $9)",
        (
            statuses,
            kinds,
            lanes,
            tenants,
            json.dumps(dict(labels)) if labels else None,
            created_after,
            created_before,
            limit,
            None if cursor is None else parse_id(cursor),
        ),
        decode,
        repeatable=True,
    )


def outcomes(job_ids: list[int]) -> Call[dict[int, Outcome | None]]:
    """How jobs ended, by id; a job that does not exist maps to None, one that goes on is left out."""

    def decode(rows: Sequence[Row]) -> dict[int, Outcome | None]:
        return {
            job_id: None
            if status is None
            else Outcome(
                status=Status(status),
                result=from_json(result),
                error=from_json(error),
                errors=from_json(errors),
            )
            for job_id, status, result, error, errors in rows
        }

    return Call(
        "select job_id, status, result, error, errors from fenceline.outcomes($1)",
        (job_ids,),
        decode,
        repeatable=True,
    )


def watch_jobs(job_ids: list[int], seconds: float) -> Call[None]:
    return Call("select fenceline.watch_jobs($1, $2)", (job_ids, seconds), nothing, repeatable=True)


def read_log(job_id: int, after: tuple[int, int], limit: int) -> Call[list[LogLine]]:
    def decode(rows: Sequence[Row]) -> list[LogLine]:
        return [
            LogLine(token=token, line=line, at=at, level=level, message=message, fields=from_json(fields))
            for token, line, at, level, message, fields in rows
        ]

    return Call(
        "select token, line, at, level, message, fields from fenceline.read_log($1, $2, $3, $4)",
        (job_id, *after, limit),
        decode,
        repeatable=True,
    )


def cancel_job(
    job_id: int, *, actor: str | None, reason: str | None, force: bool, grace_seconds: float | None
) -> Call[Status]:
    return Call(
        "select fenceline.cancel_job($1, $2, $3, $4, $5)",
        (job_id, actor, reason, force, grace_seconds),
        lambda rows: Status(scalar(rows)),
    )


def approve_job(job_id: int, *, actor: str | None, reason: str | None) -> Call[Status]:
    return Call(
        "select fenceline.approve_job($1, $2, $3)",
        (job_id, actor, reason),
        lambda rows: Status(scalar(rows)),
    )


def reject_job(job_id: int, *, actor: str | None, reason: str | None) -> Call[Status]:
    return Call(
        "select fenceline.reject_job($1, $2, $3)",
        (job_id, actor, reason),
        lambda rows: Status(scalar(rows)),
    )


def retry_job(job_id: int, *, actor: str | None) -> Call[int]:
    return Call("select job_id from fenceline.retry_job($1, $2)", (job_id, actor), scalar)


def reprioritise_job(job_id: int, priority: int, *, actor: str | None) -> Call[int]:
    return Call("select fenceline.reprioritise_job($1, $2, $3)", (job_id, priority, actor), scalar)


def delete_job(job_id: int, *, actor: str | None) -> Call[None]:
    return Call("select fenceline.delete_job($1, $2)", (job_id, actor), nothing)


def lanes(name: str | None = None) -> Call[list[Lane]]:
    return Call(
        "select name, kinds, slots, in_use, depth, oldest_age_seconds, poll_interval_ms, stale_timeout_seconds, "
        "on_stale, enabled, rate_per_second, burst, fair, ageing_seconds, default_priority "
        "from fenceline.lanes($1)",
        (name,),
        lambda rows: [
            Lane(
                name=r[0],
                kinds=list(r[1]),
                slots=r[2],
                in_use=r[3],
                depth=r[4],
                oldest_age_seconds=r[5],
                poll_interval_ms=r[6],
                stale_timeout_seconds=r[7],
                on_stale=r[8],
                enabled=r[9],
                rate_per_second=r[10],
                burst=r[11],
                fair=r[12],
                ageing_seconds=r[13],
                default_priority=r[14],
            )
            for r in rows
        ],
        repeatable=True,
    )


def set_lane(name: str, changes: Mapping[str, Any], *, actor: str | None, create: bool | None) -> Call[None]:
    return Call(
        "select fenceline.set_lane($1, cast($2 as jsonb), $3, $4)",
        (name, json.dumps(dict(changes)), actor, create),
        nothing,
        repeatable=create is not True,
    )


def delete_lane(name: str, *, actor: str | None) -> Call[None]:
    return Call("select fenceline.delete_lane($1, $2)", (name, actor), nothing)


def drain_system(draining: bool, *, actor: str | None, reason: str | None) -> Call[None]:  # noqa: FBT001 - the state itself
    return Call("select fenceline.drain_system($1, $2, $3)", (draining, actor, reason), nothing, repeatable=True)


def depth(lane: str | None = None) -> Call[int]:
    return Call("select fenceline.depth($1)", (lane,), scalar, repeatable=True)


def list_locks(tenant: str | None = None) -> Call[list[LockRecord]]:
    return Call(
        "select tenant, namespace, name, job, held, since from fenceline.list_locks($1)",
        (tenant,),
        lambda rows: [
            LockRecord(tenant=tenant, namespace=namespace, name=name, job=job, held=held, since=since)
            for tenant, namespace, name, job, held, since in rows
        ],
        repeatable=True,
    )
