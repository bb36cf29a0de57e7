"""Jobs and lanes as the server asks for them: bound to a tenant, answered with JSON text that is passed on as it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fenceline.database.calls import Call, scalar
from fenceline.model.identity import Identity
from fenceline.model.public_id import format_id


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to an enqueue: whether this call made the job, and the job as JSON text."""

    id: str
    created: bool
    job: str


@dataclass(frozen=True, slots=True)
class Page:
    """Items as one JSON array, and the cursor of the next page."""

    items: str
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a list or a bulk verb is about; None: anything. Values of one field are alternatives, labels add up."""

    statuses: list[str] | None = None
    kinds: list[str] | None = None
    lanes: list[str] | None = None
    tenants: list[str] | None = None
    labels: Mapping[str, str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def parameters(self, identity: Identity) -> tuple[Any, ...]:
        """As list_jobs takes them, within the reach of who asks."""
        tenants = self.tenants
        if identity.reach is not None:
            # A foreign tenant is a tenant without jobs.
            tenants = [identity.reach] if tenants is None or identity.reach in tenants else []
        return (
            self.statuses,
            self.kinds,
            self.lanes,
            tenants,
            json.dumps(dict(self.labels)) if self.labels else None,
            self.created_after,
            self.created_before,
            identity.only_created_by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An enqueue over HTTP; args, options and defaults are JSON text."""

    kind: str
    args: str
    options: str
    actor: str
    tenant: str
    defaults: str | None


def submit_job(asked: Submission, *, repeatable: bool) -> Call[Submitted]:
    return Call(
        "select id, created, job from fenceline.submit_job("
        "$1, cast($2 as json), cast($3 as json), $4, cast($5 as json), $6)",
        (asked.kind, asked.args, asked.options, asked.actor, asked.defaults, asked.tenant),
        lambda rows: Submitted(*rows[0]),
        repeatable=repeatable,
    )


def submit_jobs(asked: Sequence[Submission]) -> Call[list[Submitted]]:
    """All in one transaction, all or none."""
    return Call(
        "select id, created, job from fenceline.submit_jobs("
        "$1, cast($2 as json[]), cast($3 as json[]), $4, cast($5 as json[]), $6)",
        (
            [one.kind for one in asked],
            [one.args for one in asked],
            [one.options for one in asked],
            [one.actor for one in asked],
            [one.defaults for one in asked],
            [one.tenant for one in asked],
        ),
        lambda rows: [Submitted(*row) for row in rows],
    )


def get_job(job_id: int, identity: Identity) -> Call[str]:
    """Raises NotFound for what is missing, foreign or past its retention."""
    return Call(
        "select fenceline.get_job(fenceline.visible_job_id($1, $2, $3))",
        (job_id, identity.reach, identity.only_created_by),
        scalar,
        repeatable=True,
    )


def list_jobs(filters: Filter, identity: Identity, *, limit: int, cursor: int | None) -> Call[Page]:
    return Call(
        "select jobs, next_cursor from fenceline.list_jobs($1, $2, $3, $4, cast($5 as jsonb), $6, $7, $8, $9, $10)",
        (*filters.parameters(identity), limit, cursor),
        lambda rows: Page(rows[0][0], None if rows[0][1] is None else format_id(rows[0][1])),
        repeatable=True,
    )


def act_on_job(
    job_id: int,
    verb: str,
    identity: Identity,
    *,
    reason: str | None = None,
    force: bool = False,
    priority: int | None = None,
) -> Call[str | None]:
    """The job afterwards as JSON text, the new one for retry; None when it was deleted."""
    return Call(
        "select fenceline.act_on_job($1, $2, $3, $4, $5, $6, $7, $8)",
        (job_id, verb, identity.actor, identity.reach, identity.only_created_by, reason, force, priority),
        scalar,
    )


def ping() -> Call[int]:
    return Call("select number from fenceline.schema_version()", (), scalar, repeatable=True)
