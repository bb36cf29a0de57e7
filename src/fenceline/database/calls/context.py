"""What a running handler can ask of the state machine, by the name of the operation.

Values are what JSON can carry: the same operation may come from a handler in this process, from an isolated process or
over HTTP. Each is safe to repeat.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from fenceline.database.call import As, Call, function, statement, value_of
from fenceline.database.decoding import json_value, nothing, scalar
from fenceline.model.public_id import format_id
from fenceline.model.sealed import each, seal_error, seal_json

MakeCall = TypeVar("MakeCall", bound=Callable[..., Call[Any]])

#: What can be done on behalf of a handler, by name.
OPERATIONS: dict[str, Callable[..., Call[Any]]] = {
    "attempt_start": lambda job_id, _attempt_id: attempt_start(job_id),
    "snapshot_hash": lambda _job_id, _attempt_id, snapshot: snapshot_hash(snapshot),
}


def operation(make: MakeCall) -> MakeCall:
    """A call that a handler may make by name, wherever it runs. Its first parameters are the job and the attempt."""
    OPERATIONS[make.__name__] = make
    return make


@operation
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
        "record_step", locals(), result=As("jsonb", result, seal_json), error=As("jsonb", error, seal_error)
    )
    return value_of(called, nothing, repeatable=True)


@operation
def list_steps_ahead(job_id: int, attempt_id: UUID, *, names: Sequence[str]) -> Call[None]:
    return value_of(function("list_steps_ahead", locals()), nothing, repeatable=True)


@operation
def save_checkpoint(job_id: int, attempt_id: UUID, *, state: str) -> Call[None]:
    """`state` is JSON text."""
    called = function("save_checkpoint", locals(), state=As("jsonb", state, seal_json))
    return value_of(called, nothing, repeatable=True)


@operation
def set_progress(job_id: int, attempt_id: UUID, *, phase: str | None = None, progress: str | None = None) -> Call[bool]:
    """`progress` is JSON text. False if the attempt is stale."""
    return value_of(function("set_progress", locals(), progress=As("jsonb", progress)), repeatable=True)


@operation
def move_items(
    job_id: int, attempt_id: UUID, *, to: str, items: Sequence[str], why: str | None = None
) -> Call[dict[str, int]]:
    return value_of(function("move_items", locals()), json_value, repeatable=True)


@operation
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
        locals(),
        args=As("json[]", args, each(seal_json)),
        options=As("json", options),
        defaults=As("json", defaults),
        request_id=UUID(request_id),
    )
    return value_of(called, lambda rows: [format_id(child) for child in scalar(rows)], repeatable=True)


@operation
def begin_wait(
    job_id: int, attempt_id: UUID, *, step: str, signal: str | None = None, seconds: float | None = None
) -> Call[dict[str, Any]]:
    """`ended`: signal, timeout, slept, or None while the wait goes on; and the signal's `payload`."""
    return value_of(function("begin_wait", locals()), json_value, repeatable=True)


@operation
def create_callback(job_id: int, attempt_id: UUID, *, signal: str, hash: str, seconds: float) -> Call[str]:  # noqa: A002 - the column's name
    """When it expires. `hash` is in hexadecimal."""
    called = function("create_callback", locals(), hash=bytes.fromhex(hash))
    return value_of(called, lambda rows: scalar(rows).isoformat(), repeatable=True)


@operation
def take_lock(
    job_id: int, attempt_id: UUID, *, namespace: str, name: str, owner: str, holding: Sequence[str] = ()
) -> Call[bool]:
    called = function("take_lock", locals(), owner=UUID(owner), holding=[UUID(block) for block in holding])
    return value_of(called, repeatable=True)


@operation
def release_lock(job_id: int, _attempt_id: UUID, *, owner: str) -> Call[str | None]:
    """The block that is next in line."""
    called = function("release_lock", job_id=job_id, owner=UUID(owner))
    return statement("select cast({} as text)", called, decode=scalar, repeatable=True)


@operation
def guard_newer(job_id: int, attempt_id: UUID, *, resource: str, version: str) -> Call[bool]:
    """`version` is a number as text: it may be larger than numbers of JSON."""
    return value_of(function("guard_newer", locals(), version=_number(version)), repeatable=True)


def guard_write(job_id: int, attempt_id: UUID, *, resource: str, version: str) -> Call[bool]:
    """As `guard_newer`, in the transaction that writes."""
    return value_of(function("guard_write", locals(), version=_number(version)))


def _number(text: str) -> As:
    return As("numeric", As("text", text))


def attempt_start(job_id: int) -> Call[dict[str, Any]]:
    """Checkpoint, finished steps and parents: what an attempt starts with."""
    return value_of(function("attempt_start", locals()), json_value, repeatable=True)


def snapshot_hash(snapshot: str) -> Call[str]:
    """The hash of a configuration, which is JSON text."""
    return value_of(function("snapshot_hash", snapshot=As("jsonb", snapshot)), repeatable=True)


def enter_transaction() -> Call[None]:
    """Give the transaction an id, which it keeps until it ends."""
    return Call("select pg_current_xact_id()", (), nothing)


def is_in_transaction() -> Call[bool]:
    """Whether the transaction of `enter_transaction` is still open: in autocommit mode it is not."""
    return Call("select pg_current_xact_id_if_assigned() is not null", (), scalar)
