"""What may be said about a job besides its kind and args: the names of HTTP's enqueue body."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypedDict

from fenceline.client.arguments import to_json
from fenceline.errors import InvalidOption
from fenceline.model.retry import Retry


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
    """Jobs to wait for, and whether all must succeed ("success", the default) or just end ("always")."""

    jobs: Sequence[HasId | str]
    group: str
    policy: Literal["success", "always"]


class EnqueueOptions(TypedDict, total=False):
    """Every option of an enqueue; all may be left out.

    `connection` enqueues inside your transaction: an asyncpg or psycopg connection, a SQLAlchemy Connection or Session,
    or Django's `django.db.connection`. `idempotency_key` makes it safe to send the same enqueue again within a day.
    """

    lane: str
    priority: int
    run_at: datetime
    expires_at: datetime
    dedupe_key: str
    idempotency_key: str
    max_attempts: int
    labels: Mapping[str, str]
    resource_lock: str
    key: str
    key_limit: int
    needs_approval: bool
    snapshot: Any
    requires_hash: str | HasId | Mapping[str, str]
    after: HasId | Sequence[HasId | str] | After | HasMembers
    identity: str
    tenant: str
    timeout: float
    retry: Retry
    connection: Any


KNOWN = frozenset(EnqueueOptions.__annotations__)


def encode_options(options: EnqueueOptions, traceparent: str | None = None) -> str:
    """The options as JSON text, without the connection; times must name their zone."""
    if not options and traceparent is None:
        return "{}"
    _refuse_unknown(options)
    values: dict[str, Any] = {
        name: value for name, value in options.items() if name != "connection" and value is not None
    }
    if traceparent is not None:
        values["traceparent"] = traceparent
    if not values:
        return "{}"
    for name in values.keys() & {"run_at", "expires_at"}:
        values[name] = _encode_moment(name, values[name])
    if "retry" in values:
        policy = values["retry"]
        if not isinstance(policy, Retry):
            raise InvalidOption(f"retry {policy!r:.80} is not a policy: use a fenceline.Retry")
        values["retry"] = policy.to_json()
        values.setdefault("max_attempts", policy.max_attempts)
    if "after" in values:
        values["after"] = _encode_after(values["after"])
    if "requires_hash" in values:
        values["requires_hash"] = _encode_hash(values["requires_hash"])
    try:
        return to_json(values)
    except ValueError as error:
        raise InvalidOption(f"options cannot be written as JSON: {error}") from error


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
        raise InvalidOption(f"requires_hash {required!r:.200} is no hash: use one, or the job that planned") from error


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
