"""What a running handler asks of the state machine, as `Call`s, by the name of the operation.

Values are what JSON can carry: the same operation may come from a handler in this process, from an isolated process or
over HTTP. Each is safe to repeat.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from fenceline.database.calls import Call, Row, nothing, scalar
from fenceline.model.job import StepRecord
from fenceline.model.json_text import stored_json
from fenceline.model.public_id import format_id


def _json(rows: Sequence[Row]) -> Any:
    return None if rows[0][0] is None else json.loads(rows[0][0])


def record_step(
    job_id: int,
    attempt_id: UUID,
    *,
    name: str,
    args_hash: str | None = None,
    result: str | None = None,
    error: str | None = None,
    ran_seconds: float | None = None,
) -> Call[Any]:
    """`result` and `error` are JSON text."""
    return Call(
        "select fenceline.record_step($1, $2, $3, $4, cast($5 as jsonb), cast($6 as jsonb), $7)",
        (job_id, attempt_id, name, args_hash, result, error, ran_seconds),
        nothing,
        repeatable=True,
    )


def list_steps_ahead(job_id: int, attempt_id: UUID, *, names: Sequence[str]) -> Call[None]:
    return Call(
        "select fenceline.list_steps_ahead($1, $2, $3)", (job_id, attempt_id, list(names)), nothing, repeatable=True
    )


def save_checkpoint(job_id: int, attempt_id: UUID, *, state: str) -> Call[None]:
    """`state` is JSON text."""
    return Call(
        "select fenceline.save_checkpoint($1, $2, cast($3 as jsonb))",
        (job_id, attempt_id, state),
        nothing,
        repeatable=True,
    )


def set_progress(job_id: int, attempt_id: UUID, *, phase: str | None = None, progress: str | None = None) -> Call[bool]:
    """`progress` is JSON text. False: the attempt is stale."""
    return Call(
        "select fenceline.set_progress($1, $2, $3, cast($4 as jsonb))",
        (job_id, attempt_id, phase, progress),
        scalar,
        repeatable=True,
    )


def move_items(
    job_id: int, attempt_id: UUID, *, to: str, items: Sequence[str], why: str | None = None
) -> Call[dict[str, int]]:
    return Call(
        "select fenceline.move_items($1, $2, $3, $4, $5)",
        (job_id, attempt_id, to, list(items), why),
        _json,
        repeatable=True,
    )


def add_children(
    job_id: int,
    attempt_id: UUID,
    *,
    kind: str,
    args: Sequence[str],
    request_id: str,
    options: str = "{}",
    defaults: str | None = None,
) -> Call[list[str]]:
    """`args`, `options` and `defaults` are JSON text. The children's public ids."""
    return Call(
        "select fenceline.add_children($1, $2, $3, cast($4 as json[]), cast($5 as json), cast($6 as json), $7)",
        (job_id, attempt_id, kind, list(args), options, defaults, UUID(request_id)),
        lambda rows: [format_id(child) for child in scalar(rows)],
        repeatable=True,
    )


def take_lock(
    job_id: int, attempt_id: UUID, *, namespace: str, name: str, owner: str, holding: Sequence[str] = ()
) -> Call[bool]:
    return Call(
        "select fenceline.take_lock($1, $2, $3, $4, $5, $6)",
        (job_id, attempt_id, namespace, name, UUID(owner), [UUID(block) for block in holding]),
        scalar,
        repeatable=True,
    )


def release_lock(job_id: int, _attempt_id: UUID, *, owner: str) -> Call[str | None]:
    """The block that is next in line."""
    return Call("select cast(fenceline.release_lock($1, $2) as text)", (job_id, UUID(owner)), scalar, repeatable=True)


def guard_newer(job_id: int, attempt_id: UUID, *, resource: str, version: str) -> Call[bool]:
    """`version` is a number as text: JSON has none as large."""
    return Call(
        "select fenceline.guard_newer($1, $2, $3, cast(cast($4 as text) as numeric))",
        (job_id, attempt_id, resource, version),
        scalar,
        repeatable=True,
    )


#: What a handler may ask for, by name.
OPERATIONS: Mapping[str, Callable[..., Call[Any]]] = {
    operation.__name__: operation
    for operation in (
        record_step,
        list_steps_ahead,
        save_checkpoint,
        set_progress,
        move_items,
        add_children,
        take_lock,
        release_lock,
        guard_newer,
    )
}


def list_steps(job_id: int) -> Call[list[StepRecord]]:
    return Call(
        "select name, status, result, error, token, ran_seconds, ended_at from fenceline.list_steps($1)",
        (job_id,),
        lambda rows: [
            StepRecord(
                name=row[0],
                status=row[1],
                result=None if row[2] is None else json.loads(row[2]),
                error=None if row[3] is None else json.loads(row[3]),
                token=row[4],
                ran_seconds=row[5],
                ended_at=row[6],
            )
            for row in rows
        ],
        repeatable=True,
    )


def attempt_start(job_id: int) -> Call[dict[str, Any]]:
    """Checkpoint, finished steps and parents: what an attempt starts with."""
    return Call("select fenceline.attempt_start($1)", (job_id,), _json, repeatable=True)


def report_attempts(
    job_ids: list[int],
    attempt_ids: list[UUID],
    lines: Sequence[Sequence[Mapping[str, Any]] | None],
    progress: Sequence[Mapping[str, Any] | None],
) -> Call[list[UUID]]:
    """Log lines and progress of many attempts; the stale ones. Not repeatable: lines would be there twice."""
    return Call(
        "select attempt_id from fenceline.report_attempts($1, $2, cast($3 as jsonb[]), cast($4 as jsonb[]))",
        (
            job_ids,
            attempt_ids,
            [None if some is None else stored_json(list(some)) for some in lines],
            [None if some is None else stored_json(some) for some in progress],
        ),
        lambda rows: [row[0] for row in rows],
    )


def snapshot_hash(snapshot: str) -> Call[str]:
    """`snapshot` is JSON text."""
    return Call("select fenceline.snapshot_hash(cast($1 as jsonb))", (snapshot,), scalar, repeatable=True)


def enter_transaction() -> Call[None]:
    """Give the transaction an id, which it keeps as long as it lasts."""
    return Call("select pg_current_xact_id()", (), nothing)


def is_in_transaction() -> Call[bool]:
    """Whether the transaction of `enter_transaction` still lasts: in autocommit mode it does not."""
    return Call("select pg_current_xact_id_if_assigned() is not null", (), scalar)


def finish_attempt(job_id: int, attempt_id: UUID, outcome: str, *, result: str | None, errors: str | None) -> Call[str]:
    """In the caller's transaction. accepted, already or stale."""
    return Call(
        "select fenceline.finish_attempt($1, $2, $3, cast($4 as jsonb), null, cast($5 as jsonb))",
        (job_id, attempt_id, outcome, result, errors),
        scalar,
    )
