"""The options of an enqueue, named as in HTTP's enqueue body."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, Protocol, TypedDict

from fenceline.client.arguments import to_json
from fenceline.errors import InvalidOption
from fenceline.model.retry import Retry, as_settings


class HasId(Protocol):
    """A handle of a job, async or sync, or its record."""

    @property
    def id(self) -> str: ...


class HasMembers(Protocol):
    """A group, to wait for all of its jobs."""

    @property
    def name(self) -> str: ...

    @property
    def following(self) -> Sequence[Any]: ...


class After(TypedDict, total=False):
    """Jobs to wait for, and how they must have ended."""

    jobs: Sequence[HasId | str]
    """Handles, records or ids. All of them are waited for."""
    group: str
    """The name of a group: all of its jobs are waited for."""
    policy: Literal["success", "always"]
    """`"success"` (default): all must succeed, otherwise the job is cancelled. `"always"`: all must have ended."""


class EnqueueOptions(TypedDict, total=False):
    """The options of an enqueue. All are optional."""

    lane: str
    """The lane to run in. Default: the lane that lists the kind, then the decorator's, then `default`."""
    priority: int
    """-32768 to 32767, higher is sooner. Default: the decorator's, then the lane's default, then 0."""
    run_at: datetime
    """The earliest time to start, with a time zone."""
    run_in: float | timedelta
    """The delay before it may start: seconds or a timedelta, by the database's clock."""
    expires_at: datetime
    """If it has not started by then, it is cancelled with code `expired`."""
    dedupe_key: str
    """While a job of the tenant with this key is waiting, the enqueue returns that job and creates none."""
    dedupe_until: Literal["claimed", "finished"]
    """How long the dedupe key is taken: until the job is claimed (the default) or has ended."""
    idempotency_key: str
    """The same enqueue sent again within a day returns the first job, even if it has finished."""
    max_attempts: int
    """How many attempts it gets, 1 to 1000. Default: the decorator's `retry`, then 3."""
    labels: Mapping[str, str]
    """Names and values to find it by: in lists, bulk actions, streams and the dashboard."""
    resource_lock: str
    """A lock that the job holds from its enqueue to its end. A second enqueue with it raises ResourceLocked."""
    key: str
    """Jobs of the tenant with the same key run one at a time, in order; the others wait without using a slot."""
    key_limit: int
    """How many jobs with the key may run at once, 1 (the default) to 10000."""
    needs_approval: bool
    """It waits until someone other than its creator approves it."""
    snapshot: Any
    """Configuration to store with the job, and its hash; the handler reads `ctx.job.snapshot`."""
    requires_hash: str | HasId | Mapping[str, str]
    """A hash, or a job whose snapshot has it. If this job's snapshot differs, it fails: `plan_hash_mismatch`."""
    after: HasId | Sequence[HasId | str] | After | HasMembers
    """Jobs that must end first: a handle, several, a group, or an `After` with a policy."""
    identity: str
    """The identity whose credentials the app's provider gives the handler: `ctx.credentials`."""
    runner: str | Mapping[str, str]
    """The name of the worker or runner that must run it, or labels that it must have."""
    tenant: str
    """The tenant it belongs to; `default` if omitted. Over HTTP the token decides."""
    timeout: float
    """Seconds an attempt may take before it fails with code `timeout`. Default: the decorator's, then no limit."""
    retry: Retry | int
    """The retry policy, or only the number of attempts. Default: the decorator's."""
    actor: str
    """Who enqueues it, shown as `created_by`. Default: the app's actor."""
    connection: Any
    """Enqueue in the transaction of this asyncpg, psycopg, SQLAlchemy or Django connection or session."""


KNOWN = frozenset(EnqueueOptions.__annotations__)


def encode_options(
    options: EnqueueOptions,
    traceparent: str | None = None,
    *,
    actor_role: str | None = None,
    is_transaction: bool = False,
) -> str:
    """The options as JSON text, without the connection; times must name their zone.

    `actor_role`: the role of the caller over HTTP; it matters where an identity is named (see check_identity).
    `is_transaction`: the enqueue commits by itself, unless the options bring a connection. Then an existing job that
    its `dedupe_key` finds need not be guarded until the commit.
    """
    if not options and traceparent is None:
        return "{}"
    if unknown := options.keys() - KNOWN:
        raise InvalidOption(f"unknown option {', '.join(sorted(unknown))}: use {', '.join(sorted(KNOWN))}")
    values: dict[str, Any] = {
        name: _ENCODERS[name](value) if name in _ENCODERS else value
        for name, value in options.items()
        if name not in {"connection", "actor"} and value is not None
    }
    added = {"traceparent": traceparent, "actor_role": actor_role if "identity" in values else None}
    values |= {name: value for name, value in added.items() if value is not None}
    if is_transaction and "dedupe_key" in values and options.get("connection") is None:
        values["autocommit"] = True
    if "retry" in values:
        values = values.pop("retry") | values
    try:
        return to_json(values)
    except ValueError as error:
        raise InvalidOption(f"options cannot be written as JSON: {error}") from error


def _encode_retry(retry: Retry | int) -> dict[str, Any]:
    try:
        return as_settings(retry)
    except ValueError as error:
        raise InvalidOption(str(error)) from None


def _encode_delay(delay: Any) -> Any:
    return delay.total_seconds() if isinstance(delay, timedelta) else delay


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
    # A string is a sequence of strings too, and a single job may stand for a list.
    jobs = [after] if isinstance(after, str) or not isinstance(after, Iterable) else after
    try:
        return [job if isinstance(job, str) else job.id for job in jobs]
    except AttributeError as error:
        raise InvalidOption(f"after {after!r:.200} does not name jobs: use handles or ids") from error


#: Options whose values JSON has no form for.
_ENCODERS: Mapping[str, Callable[[Any], Any]] = {
    "run_at": partial(_encode_moment, "run_at"),
    "expires_at": partial(_encode_moment, "expires_at"),
    "run_in": _encode_delay,
    "retry": _encode_retry,
    "after": _encode_after,
    "requires_hash": _encode_hash,
}
