"""What a running handler asks of the state machine, by the name of the operation.

Values are what JSON can carry: the same operation may come from a handler in this process, from an isolated process or
over HTTP. Each is safe to repeat.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, function, statement, value_of
from fenceline.database.decoding import json_value, nothing, scalar
from fenceline.model.public_id import format_id
from fenceline.model.sealed import each, seal_error, seal_json


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
    called = function(
        "record_step",
        job_id=job_id,
        attempt_id=attempt_id,
        name=name,
        args_hash=args_hash,
        result=As("jsonb", result, seal_json),
        error=As("jsonb", error, seal_error),
        ran_seconds=ran_seconds,
    )
    return value_of(called, nothing, repeatable=True)


def list_steps_ahead(job_id: int, attempt_id: UUID, *, names: Sequence[str]) -> Call[None]:
    called = function("list_steps_ahead", job_id=job_id, attempt_id=attempt_id, names=list(names))
    return value_of(called, nothing, repeatable=True)


def save_checkpoint(job_id: int, attempt_id: UUID, *, state: str) -> Call[None]:
    """`state` is JSON text."""
    called = function("save_checkpoint", job_id=job_id, attempt_id=attempt_id, state=As("jsonb", state, seal_json))
    return value_of(called, nothing, repeatable=True)


def set_progress(job_id: int, attempt_id: UUID, *, phase: str | None = None, progress: str | None = None) -> Call[bool]:
    """`progress` is JSON text. False: the attempt is stale."""
    called = function("set_progress", job_id=job_id, attempt_id=attempt_id, phase=phase, progress=As("jsonb", progress))
    return value_of(called, repeatable=True)


def move_items(
    job_id: int, attempt_id: UUID, *, to: str, items: Sequence[str], why: str | None = None
) -> Call[dict[str, int]]:
    called = function("move_items", job_id=job_id, attempt_id=attempt_id, to=to, items=list(items), why=why)
    return value_of(called, json_value, repeatable=True)


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
    called = function(
        "add_children",
        job_id=job_id,
        attempt_id=attempt_id,
        kind=kind,
        args=As("json[]", list(args), each(seal_json)),
        options=As("json", options),
        defaults=As("json", defaults),
        request_id=UUID(request_id),
    )
    return value_of(called, lambda rows: [format_id(child) for child in scalar(rows)], repeatable=True)


def begin_wait(
    job_id: int, attempt_id: UUID, *, step: str, signal: str | None = None, seconds: float | None = None
) -> Call[dict[str, Any]]:
    """`ended`: signal, timeout, slept, or None where the wait goes on; and the signal's `payload`."""
    called = function("begin_wait", job_id=job_id, attempt_id=attempt_id, step=step, signal=signal, seconds=seconds)
    return value_of(called, json_value, repeatable=True)


def create_callback(job_id: int, attempt_id: UUID, *, signal: str, hash: str, seconds: float) -> Call[str]:  # noqa: A002 - the column's name
    """When it expires. `hash` is in hexadecimal."""
    called = function(
        "create_callback",
        job_id=job_id,
        attempt_id=attempt_id,
        signal=signal,
        hash=bytes.fromhex(hash),
        seconds=seconds,
    )
    return value_of(called, lambda rows: scalar(rows).isoformat(), repeatable=True)


def take_lock(
    job_id: int, attempt_id: UUID, *, namespace: str, name: str, owner: str, holding: Sequence[str] = ()
) -> Call[bool]:
    called = function(
        "take_lock",
        job_id=job_id,
        attempt_id=attempt_id,
        namespace=namespace,
        name=name,
        owner=UUID(owner),
        holding=[UUID(block) for block in holding],
    )
    return value_of(called, repeatable=True)


def release_lock(job_id: int, _attempt_id: UUID, *, owner: str) -> Call[str | None]:
    """The block that is next in line."""
    called = function("release_lock", job_id=job_id, owner=UUID(owner))
    return statement("select cast({} as text)", called, decode=scalar, repeatable=True)


def guard_newer(job_id: int, attempt_id: UUID, *, resource: str, version: str) -> Call[bool]:
    """`version` is a number as text: JSON has none as large."""
    called = function("guard_newer", job_id=job_id, attempt_id=attempt_id, resource=resource, version=_number(version))
    return value_of(called, repeatable=True)


def guard_write(job_id: int, attempt_id: UUID, *, resource: str, version: str) -> Call[bool]:
    """As `guard_newer`, in the transaction that writes."""
    called = function("guard_write", job_id=job_id, attempt_id=attempt_id, resource=resource, version=_number(version))
    return value_of(called)


def _number(text: str) -> As:
    return As("numeric", As("text", text))


def attempt_start(job_id: int) -> Call[dict[str, Any]]:
    """Checkpoint, finished steps and parents: what an attempt starts with."""
    return value_of(function("attempt_start", job_id=job_id), json_value, repeatable=True)


def snapshot_hash(snapshot: str) -> Call[str]:
    """Of a configuration, given as JSON text."""
    return value_of(function("snapshot_hash", snapshot=As("jsonb", snapshot)), repeatable=True)


#: What is asked for on behalf of a handler, by name.
OPERATIONS: Mapping[str, Callable[..., Call[Any]]] = {
    operation.__name__: operation
    for operation in (
        record_step,
        list_steps_ahead,
        save_checkpoint,
        set_progress,
        move_items,
        add_children,
        begin_wait,
        create_callback,
        take_lock,
        release_lock,
        guard_newer,
    )
} | {
    "attempt_start": lambda job_id, _attempt_id: attempt_start(job_id),
    "snapshot_hash": lambda _job_id, _attempt_id, snapshot: snapshot_hash(snapshot),
}


def enter_transaction() -> Call[None]:
    """Give the transaction an id, which it keeps as long as it lasts."""
    return Call("select pg_current_xact_id()", (), nothing)


def is_in_transaction() -> Call[bool]:
    """Whether the transaction of `enter_transaction` still lasts: in autocommit mode it does not."""
    return Call("select pg_current_xact_id_if_assigned() is not null", (), scalar)
