"""What may be said about a job besides its kind and args: the names of HTTP's enqueue body."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict

from fenceline.client.arguments import to_json
from fenceline.errors import InvalidOption
from fenceline.model.retry import Retry, as_settings


class HasId(Protocol):
    """A job's handle, async or sync, or its record."""

    @property
    def id(self) -> str: ...


class HasMembers(Protocol):
    """A group: to wait for all of its jobs."""

    @property
    def name(self) -> str: ...

    @property
    def following(self) -> Sequence[Any]: ...


class After(TypedDict, total=False):
    """Jobs to wait for, and what must have become of them."""

    jobs: Sequence[HasId | str]
    """Handles, records or ids. All of them are waited for."""
    group: str
    """The name of a group: all of its jobs are waited for."""
    policy: Literal["success", "always"]
    """All must succeed, else the job is cancelled ("success", the default); or all must have ended ("always")."""


class EnqueueOptions(TypedDict, total=False):
    """Every option of an enqueue; all may be left out."""

    lane: str
    """The lane it runs in. Else the lane that lists the kind, else the decorator's, else `default`."""
    priority: int
    """Higher is sooner, -32768 to 32767. Else the decorator's, else the lane's default, else 0."""
    run_at: datetime
    """Not before this moment, which must have a timezone."""
    run_in: float | timedelta
    """Not before so many seconds, or a timedelta, from the enqueue, by the database's clock."""
    expires_at: datetime
    """Cancelled, code `expired`, if it has not started by then."""
    dedupe_key: str
    """While a job of the tenant with this key waits, the enqueue returns that job and makes none."""
    dedupe_until: Literal["claimed", "finished"]
    """How long the dedupe key is taken: until a worker has the job (the default), or until it has ended."""
    idempotency_key: str
    """The same enqueue sent again within a day returns the first job, whatever became of it."""
    max_attempts: int
    """How often it is tried, 1 to 1000. Else the decorator's `retry`, else 3."""
    labels: Mapping[str, str]
    """Names and values to find it by: in lists, bulk actions, streams and the dashboard."""
    resource_lock: str
    """A lock that the job holds from the enqueue to its end. Another enqueue with it raises ResourceLocked."""
    key: str
    """Jobs of the tenant with the same key run one at a time, in order; the others wait outside the lane's slots."""
    key_limit: int
    """How many jobs with the key may run at a time, 1 (the default) to 10000."""
    needs_approval: bool
    """It waits until somebody else approves it."""
    snapshot: Any
    """What the job was planned with, kept with it and its hash; the handler reads `ctx.job.snapshot`."""
    requires_hash: str | HasId | Mapping[str, str]
    """A hash, or the job whose snapshot has it. It fails, code `plan_hash_mismatch`, if its own has another."""
    after: HasId | Sequence[HasId | str] | After | HasMembers
    """Jobs that must end first: a handle, several, a group, or an `After` with a policy."""
    identity: str
    """Whose credentials the handler gets, by the app's provider: `ctx.credentials`."""
    runner: str | Mapping[str, str]
    """The name of the worker or runner that is to run it, or labels that whoever runs it must have."""
    tenant: str
    """Whom it belongs to; else `default`. Over HTTP the token says it."""
    timeout: float
    """Seconds that an attempt may take; then it fails, code `timeout`. Else the decorator's, else unlimited."""
    retry: Retry | int
    """When it is tried again, or just how many attempts there are. Else the decorator's."""
    actor: str
    """Who enqueues: `created_by` of the job. Else the app's."""
    connection: Any
    """Your transaction, to enqueue in: asyncpg, psycopg, a SQLAlchemy Connection or Session, Django's connection."""


KNOWN = frozenset(EnqueueOptions.__annotations__)


def encode_options(
    options: EnqueueOptions,
    traceparent: str | None = None,
    *,
    actor_role: str | None = None,
    is_transaction: bool = False,
) -> str:
    """The options as JSON text, without the connection; times must name their zone.

    `actor_role`: of whoever asks over HTTP. It counts where an identity is named (see check_identity).
    `is_transaction`: the enqueue is a transaction of its own, unless the options bring a connection; then an answer
    with another job (`dedupe_key`) need not be guarded until the commit.
    """
    if not options and traceparent is None:
        return "{}"
    _refuse_unknown(options)
    values: dict[str, Any] = {
        name: value for name, value in options.items() if name not in {"connection", "actor"} and value is not None
    }
    more = {"traceparent": traceparent, "actor_role": actor_role if "identity" in values else None}
    values |= {name: value for name, value in more.items() if value is not None}
    if not values:
        return "{}"
    values |= _guard(options, is_transaction=is_transaction)
    for name in values.keys() & {"run_at", "expires_at"}:
        values[name] = _encode_moment(name, values[name])
    if isinstance(values.get("run_in"), timedelta):
        values["run_in"] = values["run_in"].total_seconds()
    if "retry" in values:
        try:
            values = as_settings(values.pop("retry")) | values
        except ValueError as error:
            raise InvalidOption(str(error)) from None
    if "after" in values:
        values["after"] = _encode_after(values["after"])
    if "requires_hash" in values:
        values["requires_hash"] = _encode_hash(values["requires_hash"])
    try:
        return to_json(values)
    except ValueError as error:
        raise InvalidOption(f"options cannot be written as JSON: {error}") from error


def _guard(options: EnqueueOptions, *, is_transaction: bool) -> dict[str, bool]:
    by_key = is_transaction and options.get("dedupe_key") is not None and options.get("connection") is None
    return {"autocommit": True} if by_key else {}


def _refuse_unknown(options: EnqueueOptions) -> None:
    unknown = options.keys() - KNOWN
    if unknown:
        raise InvalidOption(f"unknown option {', '.join(sorted(unknown))}: use {', '.join(sorted(KNOWN))}")


def _encode_hash(required: Any) -> Any:
    """A hash as it is; a job for the hash of its snapshot."""
    if isinstance(required, str | Mapping):
        return required
    try:
        return {"job": required.id}
    except AttributeError as error:
        raise InvalidOption(
            f"requires_hash {required!r:.200} is not a hash: use a snapshot's hash, or the job that has it"
        ) from error


def _encode_moment(name: str, moment: Any) -> str:
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidOption(f"{name} {moment!r} is not a moment: use a datetime with a timezone")
    return moment.isoformat()


def _encode_after(after: Any) -> Any:
    if hasattr(after, "following"):  # a group
        return {"group": after.name}
    if isinstance(after, Mapping):
        return {**after, "jobs": _encode_after(after["jobs"])} if "jobs" in after else after
    # A string is a sequence of strings too, and one job is easily given for many.
    jobs = [after] if isinstance(after, str) or not isinstance(after, Iterable) else after
    try:
        return [job if isinstance(job, str) else job.id for job in jobs]
    except AttributeError as error:
        raise InvalidOption(f"after {after!r:.200} does not name jobs: use handles or ids") from error
