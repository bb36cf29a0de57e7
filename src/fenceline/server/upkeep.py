"""What operators do by hand, or ask about: sweep, prune, retention, and what is wrong with the database and the fleet.

Sweep and prune only do sooner what workers do by themselves: `workers:manage`. How long jobs are kept, how many a
tenant may have, and what doctor sees (other sessions and their statements), concern every tenant: `system:manage`,
which only platform_admin has unless a role of your own names it.
"""

import json
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import ConfigDict, Field, StrictFloat, StrictInt

from fenceline.client.caller import is_connection_failure
from fenceline.database import upkeep_calls
from fenceline.doctor.examine import examine
from fenceline.doctor.finding import Limits
from fenceline.errors import DatabaseUnavailable
from fenceline.server.routing import ApiRequest, json_response, operation, router
from fenceline.server.schemas import Body, Name, View

routes = router("upkeep")

_WITH_BODY = ("too_large", "unsupported_media_type", "invalid")

Ended = Literal["succeeded", "succeeded_with_errors", "failed", "cancelled"]


class SweptView(View):
    model_config = ConfigDict(json_schema_extra={"examples": [{"swept": 0}]})

    swept: int


class PruneBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"limit": 10000}]})

    limit: Annotated[StrictInt, Field(ge=1, le=1_000_000, description="Rows deleted at most.")] = 10_000


class PrunedView(View):
    model_config = ConfigDict(json_schema_extra={"examples": [{"pruned": 1200}]})

    pruned: int


class RetentionBody(Body):
    """`seconds: null` goes back to what the kind's decorator or the default says."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seconds": 7776000, "kind": "ingest"}]})

    seconds: Annotated[StrictFloat | StrictInt, Field(ge=0, le=2_147_483_647)] | None
    kind: Annotated[Name | None, Field(description="Without it: the default of all kinds.")] = None
    status: Annotated[Ended | None, Field(description="Only jobs of the kind that ended like this.")] = None


class RetentionRow(View):
    kind: Annotated[str | None, Field(description="null: the default of all others.")]
    status: str | None
    seconds: float
    said_by: Literal["operator", "decorator", "default"]


class RetentionList(View):
    model_config = ConfigDict(
        title="Retention",
        json_schema_extra={
            "examples": [
                {
                    "items": [{"kind": None, "status": None, "seconds": 604800.0, "said_by": "default"}],
                    "next_cursor": None,
                }
            ]
        },
    )

    items: list[RetentionRow]
    next_cursor: None


class TenantLimitBody(Body):
    """`max_jobs: null` takes the limit away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_jobs": 100000, "tenant": "acme"}]})

    max_jobs: Annotated[StrictInt, Field(ge=0, le=2_147_483_647)] | None
    tenant: Annotated[Name | None, Field(description="Without it: every tenant that has no limit of its own.")] = None


class TenantLimitRow(View):
    tenant: Annotated[str | None, Field(description="null: the default of all others.")]
    max_jobs: int | None
    jobs: Annotated[int | None, Field(description="Unfinished, by the last count.")]


class TenantLimitList(View):
    model_config = ConfigDict(
        title="TenantLimits",
        json_schema_extra={
            "examples": [{"items": [{"tenant": None, "max_jobs": None, "jobs": None}], "next_cursor": None}]
        },
    )

    items: list[TenantLimitRow]
    next_cursor: None


class FindingView(View):
    check: Annotated[str, Field(description="Which check says it: a fixed word.")]
    subject: str
    what: str
    do: str
    level: Literal["problem", "notice"]


class DoctorView(View):
    model_config = ConfigDict(
        title="Doctor",
        json_schema_extra={
            "examples": [
                {
                    "healthy": False,
                    "findings": [
                        {
                            "check": "setting", "subject": "fsync", "level": "problem",
                            "what": "fsync is off (set by: configuration file): a crash of the machine can lose jobs",
                            "do": "switch it on, then reload",
                        }
                    ],
                }
            ]
        },
    )  # fmt: skip

    healthy: Annotated[bool, Field(description="No problems; notices leave it true.")]
    findings: list[FindingView]


@routes.post("/v1/admin/sweep", **operation("workers:manage", model=SweptView))
async def sweep(request: ApiRequest) -> Response:
    """Take back the jobs of workers that are gone. Workers and servers do this twice a second."""
    return json_response(json.dumps({"swept": await request.caller.call(upkeep_calls.sweep())}))


@routes.post("/v1/admin/prune", **operation("workers:manage", *_WITH_BODY, model=PrunedView))
async def prune(request: ApiRequest, body: PruneBody | None = None) -> Response:
    """Forget some finished jobs whose retention is over; 0: there are no more. Workers do this once a minute."""
    limit = (body or PruneBody()).limit
    return json_response(json.dumps({"pruned": await request.caller.call(upkeep_calls.prune(limit))}))


@routes.get("/v1/admin/retention", **operation("workers:view", model=RetentionList))
async def retention(request: ApiRequest) -> Response:
    """How long finished jobs are kept: the default first, then kinds that have a word of their own."""
    found = await request.caller.call(upkeep_calls.retention())
    return json_response(json.dumps({"items": [asdict(row) for row in found], "next_cursor": None}))


@routes.put("/v1/admin/retention", **operation("system:manage", *_WITH_BODY, model=RetentionList))
async def set_retention(request: ApiRequest, body: RetentionBody) -> Response:
    """Keep finished jobs so long: of one kind (and end), or all that nothing else is said about. Audited."""
    actor = request.identity.actor
    call = upkeep_calls.set_retention(body.seconds, kind=body.kind, status=body.status, actor=actor)
    await request.caller.call(call)
    return await retention(request)


@routes.get("/v1/admin/limits", **operation("system:manage", model=TenantLimitList))
async def tenant_limits(request: ApiRequest) -> Response:
    """How many unfinished jobs tenants may have: the default first, then tenants that have a limit of their own."""
    found = await request.caller.call(upkeep_calls.tenant_limits())
    return json_response(json.dumps({"items": [asdict(row) for row in found], "next_cursor": None}))


@routes.put("/v1/admin/limits", **operation("system:manage", *_WITH_BODY, model=TenantLimitList))
async def set_tenant_limit(request: ApiRequest, body: TenantLimitBody) -> Response:
    """Refuse new jobs of a tenant (429 `limited`) while it has so many that are unfinished. Audited."""
    call = upkeep_calls.set_tenant_limit(body.max_jobs, tenant=body.tenant, actor=request.identity.actor)
    await request.caller.call(call)
    return await tenant_limits(request)


@routes.get("/v1/admin/doctor", **operation("system:manage", "invalid", model=DoctorView))
async def doctor(
    request: ApiRequest,
    patience: Annotated[float, Query(ge=0, le=31_536_000, description="Seconds that things may take or wait.")] = 300.0,
    max_dead_rows: Annotated[int, Query(ge=0, le=2**53, description="Dead rows of a table.")] = 100_000,
    max_notifications: Annotated[float, Query(ge=0, le=1, description="Used share of the notification queue.")] = 0.1,
) -> Response:
    """What is wrong with the database and the fleet, and what to do about it."""
    limits = Limits(patience_seconds=patience, dead_rows=max_dead_rows, notification_queue=max_notifications)
    try:
        async with request.caller.transaction_connection() as connection:
            findings = await examine(connection, limits)
    except Exception as error:
        if is_connection_failure(error):
            raise DatabaseUnavailable(f"the database cannot be reached: {error}") from error
        raise
    healthy = all(finding.level != "problem" for finding in findings)
    return json_response(json.dumps({"healthy": healthy, "findings": [asdict(finding) for finding in findings]}))
