"""New jobs: from clients, and over HTTP, where they are bound to a tenant and answered with the job's JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fenceline.database.call import As, Call, Function, function, rows_of
from fenceline.database.decoding import Row, tuples
from fenceline.model.sealed import each, seal_json, seal_specs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to an enqueue: which job, and whether this call made it."""

    job_id: int
    created: bool


def enqueued(rows: Sequence[Row]) -> Enqueued:
    return Enqueued(rows[0][0], rows[0][1])


def enqueue(
    kind: str, args: str, options: str, *, actor: str | None, defaults: str | None, repeatable: bool
) -> Call[Enqueued]:
    """`args`, `options` and `defaults` are JSON text."""
    given = _given(kind, As("json", args, seal_json), options, actor, defaults)
    return _enqueue(function("enqueue", given), "job_id, created", enqueued, repeatable=repeatable)


def enqueue_many(
    kind: str,
    args: list[str],
    options: str,
    own_options: list[str] | None = None,
    *,
    actor: str | None,
    defaults: str | None,
    repeatable: bool,
) -> Call[list[tuple[int, bool]]]:
    """As `enqueue`, answered with plain pairs: there may be tens of thousands. `own_options`: options of each single
    job, in addition to those of all.
    """
    given = _given(kind, As("json[]", args, each(seal_json)), options, actor, defaults)
    called = (
        function("enqueue_many", given)
        if own_options is None
        else function("enqueue_each", given, each=As("json[]", own_options))
    )
    return _enqueue(called, "job_ids, created", _pairs, repeatable=repeatable)


def job_spec(kind: str, args: str, options: str, defaults: str | None, **more: Any) -> dict[str, Any]:
    """One job of `enqueue_jobs`; args, options and defaults are JSON text."""
    spec = {**json.loads(options), "kind": kind, "args": json.loads(args), **more}
    return spec if defaults is None else {**spec, "defaults": json.loads(defaults)}


def enqueue_jobs(specs: Sequence[Mapping[str, Any]], *, actor: str | None) -> Call[list[tuple[int, bool]]]:
    """Jobs of different kinds and options in one statement."""
    return _enqueue(
        function("enqueue_jobs", jobs=As("json", json.dumps(list(specs)), seal_specs), actor=actor),
        "job_ids, created",
        _pairs,
    )


def _given(kind: str, args: As, options: str, actor: str | None, defaults: str | None) -> dict[str, Any]:
    """What every enqueue says of its jobs."""
    return {
        "kind": kind,
        "args": args,
        "options": As("json", options),
        "actor": actor,
        "defaults": As("json", defaults),
    }


def _enqueue(
    called: Function, columns: str, decode: Callable[[Sequence[Row]], T], *, repeatable: bool = False
) -> Call[T]:
    return rows_of(called, columns, decode, repeatable=repeatable, makes_jobs=True)


def _pairs(rows: Sequence[Row]) -> list[tuple[int, bool]]:
    job_ids, created = rows[0]
    if created is None:
        return [(job_id, True) for job_id in job_ids or ()]
    return list(zip(job_ids, created, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An enqueue over HTTP; args, options and defaults are JSON text. `created_by`: the caller sees only this actor's
    jobs.
    """

    kind: str
    args: str
    options: str
    actor: str
    tenant: str
    defaults: str | None
    created_by: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to an enqueue: whether this call made the job, and the job as JSON text."""

    id: str
    created: bool
    job: str


#: What `submitted` reads.
SUBMITTED = "id, created, job"


def submitted(rows: Sequence[Row]) -> Submitted:
    return Submitted(*rows[0])


def submit_job(asked: Submission, *, repeatable: bool) -> Call[Submitted]:
    given = _given(asked.kind, As("json", asked.args, seal_json), asked.options, asked.actor, asked.defaults)
    called = (
        function("submit_job", given, tenant=asked.tenant)
        if asked.created_by is None
        else function("submit_visible_job", given, tenant=asked.tenant, created_by=asked.created_by)
    )
    return rows_of(called, SUBMITTED, submitted, repeatable=repeatable)


def submit_jobs(asked: Sequence[Submission]) -> Call[list[Submitted]]:
    """All in one transaction, all or none."""
    return rows_of(
        function(
            "submit_jobs",
            kinds=[one.kind for one in asked],
            args=As("json[]", [one.args for one in asked], each(seal_json)),
            options=As("json[]", [one.options for one in asked]),
            actors=[one.actor for one in asked],
            defaults=As("json[]", [one.defaults for one in asked]),
            tenants=[one.tenant for one in asked],
        ),
        SUBMITTED,
        tuples(Submitted),
    )
