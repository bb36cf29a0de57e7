"""Upkeep by operators: sweep, prune, retention, limits, and the doctor's checks of the database and the fleet.

All of it concerns every tenant, so it takes `workers:manage`. The doctor sees other sessions and their statements, so
it takes `system:manage`, which only platform_admin has unless one of your own roles names it.
"""

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import Field, StrictBool, StrictFloat, StrictInt

from fenceline.client.system import System
from fenceline.database import calls, failures
from fenceline.doctor.examine import examine
from fenceline.doctor.finding import Finding, Limits
from fenceline.errors import DatabaseUnavailable
from fenceline.model.job import Retention, TenantLimit
from fenceline.model.public_id import format_id
from fenceline.model.status import FinalStatus
from fenceline.server.routing import ApiRequest, operation, router, value_response
from fenceline.server.schemas import Body, Name, ReasonBody
from fenceline.server.views import View, examples, shows

routes = router("upkeep")


class SweptView(View):
    model_config = examples({"swept": 0})

    swept: int


class PruneBody(Body):
    model_config = examples({"limit": 10000})

    limit: Annotated[StrictInt, Field(ge=1, le=1_000_000, description="The most rows to delete.")] = 10_000


class PrunedView(View):
    model_config = examples({"pruned": 1200})

    pruned: int


class RetentionBody(Body):
    """`seconds: null` returns to the setting of the kind's decorator, or to the default."""

    model_config = examples({"seconds": 7776000, "kind": "ingest"})

    seconds: Annotated[StrictFloat | StrictInt, Field(ge=0, le=2_147_483_647)] | None
    kind: Annotated[Name | None, Field(description="If omitted: the default for all kinds.")] = None
    status: Annotated[FinalStatus | None, Field(description="Only jobs that ended with this status.")] = None


@shows(Retention)
class RetentionRow(View):
    kind: Annotated[str | None, Field(description="null: the default for all others.")]
    said_by: Literal["operator", "decorator", "default"]


class RetentionList(View):
    model_config = examples(
        {
            "items": [{"kind": None, "status": None, "seconds": 604800.0, "said_by": "default"}],
            "next_cursor": None,
        },
        title="Retention",
    )

    items: list[RetentionRow]
    next_cursor: None


class TenantLimitBody(Body):
    """`max_jobs: null` removes the limit."""

    model_config = examples({"max_jobs": 100000, "tenant": "acme"})

    max_jobs: Annotated[StrictInt, Field(ge=0, le=2_147_483_647)] | None
    tenant: Annotated[Name | None, Field(description="If omitted: every tenant without its own limit.")] = None


@shows(TenantLimit)
class TenantLimitRow(View):
    tenant: Annotated[str | None, Field(description="null: the default for all others.")]
    jobs: Annotated[int | None, Field(description="Unfinished jobs, at the last count.")]


class TenantLimitList(View):
    model_config = examples(
        {"items": [{"tenant": None, "max_jobs": None, "jobs": None}], "next_cursor": None},
        title="TenantLimits",
    )

    items: list[TenantLimitRow]
    next_cursor: None


class ApprovalBody(ReasonBody):
    model_config = examples({"by_other": True})

    by_other: StrictBool


class ApprovalView(View):
    model_config = examples({"by_other": True}, title="Approval")

    by_other: bool


@shows(Finding)
class FindingView(View):
    check: Annotated[str, Field(description="The name of the check.")]
    seconds: Annotated[float | None, Field(description="For how long, if known.")] = None
    hurts: Annotated[str | None, Field(description="Who or what suffers from it.")] = None


class DoctorView(View):
    model_config = examples(
        {
            "healthy": False,
            "findings": [
                {
                    "check": "setting", "subject": "fsync", "level": "problem",
                    "what": "fsync is off (set by: configuration file): a crash of the machine can lose jobs",
                    "do": "switch it on, then reload",
                }
            ],
        },
        title="Doctor",
    )  # fmt: skip

    healthy: Annotated[bool, Field(description="No problems; notices leave it true.")]
    findings: list[FindingView]


class RekeyView(View):
    model_config = examples({"id": "01HQ-3KBR-T5GN-8WX"})

    id: Annotated[str, Field(description="The job that re-encrypts.")]


@routes.post("/v1/admin/rekey", **operation("system:manage", model=RekeyView, status=202))
async def rekey(request: ApiRequest) -> Response:
    """Have a worker re-encrypt everything with the newest key."""
    made = await request.call(calls.rekey.start_rekey(actor=request.identity.actor))
    return value_response({"id": format_id(made.job_id)}, 202)


@routes.post("/v1/admin/sweep", **operation("workers:manage", model=SweptView))
async def sweep(request: ApiRequest) -> Response:
    """Return the jobs of dead workers to the queue. Workers and servers do this twice a second."""
    return value_response({"swept": await request.call(calls.upkeep.sweep())})


@routes.post("/v1/admin/prune", **operation("workers:manage", model=PrunedView))
async def prune(request: ApiRequest, body: PruneBody | None = None) -> Response:
    """Delete some finished jobs past their retention; 0 means none are left. Workers do this once a minute."""
    limit = (body or PruneBody()).limit
    return value_response({"pruned": await System(lambda: request.server.maintenance).prune(limit)})


@routes.get("/v1/admin/retention", **operation("workers:view", model=RetentionList))
async def retention(request: ApiRequest) -> Response:
    """How long finished jobs are kept: the default first, then kinds with their own setting."""
    return await request.answer_list(calls.system.retention())


@routes.put("/v1/admin/retention", **operation("workers:manage", model=RetentionList))
async def set_retention(request: ApiRequest, body: RetentionBody) -> Response:
    """Set how long finished jobs are kept: those of one kind (and status), or all others. Audited."""
    await request.call(calls.system.set_retention(**body.model_dump(), actor=request.identity.actor))
    return await retention(request)


@routes.get("/v1/admin/limits", **operation("workers:manage", model=TenantLimitList))
async def tenant_limits(request: ApiRequest) -> Response:
    """How many unfinished jobs tenants may have: the default first, then tenants with their own limit."""
    return await request.answer_list(calls.system.tenant_limits())


@routes.put("/v1/admin/limits", **operation("workers:manage", model=TenantLimitList))
async def set_tenant_limit(request: ApiRequest, body: TenantLimitBody) -> Response:
    """Limit the unfinished jobs of a tenant; more are refused (429 `limited`). Audited."""
    await request.call(calls.system.set_tenant_limit(**body.model_dump(), actor=request.identity.actor))
    return await tenant_limits(request)


@routes.get("/v1/admin/approval", **operation("workers:view", model=ApprovalView))
async def approval(request: ApiRequest) -> Response:
    """Whether jobs must be approved by someone other than who enqueued them."""
    return value_response({"by_other": await request.call(calls.system.approval())})


@routes.put("/v1/admin/approval", **operation("system:manage", model=ApprovalView))
async def set_approval(request: ApiRequest, body: ApprovalBody) -> Response:
    """Set who may approve jobs. With `by_other: false`, whoever enqueued a job may also approve it. Audited."""
    await request.call(calls.system.set_approval(**body.model_dump(), actor=request.identity.actor))
    return await approval(request)


@routes.get("/v1/admin/doctor", **operation("system:manage", model=DoctorView))
async def doctor(
    request: ApiRequest,
    patience: Annotated[
        float, Query(ge=0, le=31_536_000, description="Seconds something may take or wait before it is reported.")
    ] = 300.0,
    max_dead_rows: Annotated[
        int, Query(ge=0, le=2**53, description="Dead rows a table may have before it is reported.")
    ] = 100_000,
    max_notifications: Annotated[
        float, Query(ge=0, le=1, description="Share of the notification queue that may be used before it is reported.")
    ] = 0.1,
) -> Response:
    """Problems of the database and the fleet, and what to do about them."""
    limits = Limits(patience_seconds=patience, dead_rows=max_dead_rows, notification_queue=max_notifications)
    try:
        async with request.server.maintenance.transaction_connection() as connection:
            findings = await examine(connection, limits)
    except Exception as error:
        if failures.is_lost(error) or failures.is_passing(error):
            raise DatabaseUnavailable(f"the database cannot be reached: {error}") from error
        raise
    healthy = all(finding.level != "problem" for finding in findings)
    return value_response({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
