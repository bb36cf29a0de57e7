"""What operators ask of a queue: backlog, active work, errors, throughput, rates, slow jobs; of the tenant's own."""

import json
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import AwareDatetime, ConfigDict, Field

from fenceline.database import observe_calls, stats_calls
from fenceline.server.queries import Limit, Texts, make_filter
from fenceline.server.routing import ApiRequest, json_response, operation, router
from fenceline.server.schemas import AT, ID, View

routes = router("stats")

Seconds = Annotated[float, Query(gt=0, le=31_536_000, description="How far back to look.")]
Complete = Annotated[
    bool, Field(description="False: there was more than is looked at in one go, and the figures are a sample.")
]
_COUNTS = {"ended": 12, "succeeded": 9, "succeeded_with_errors": 1, "failed": 2, "cancelled": 0}


class BacklogRow(View):
    kind: str
    lane: str
    queued: int
    scheduled: int
    waiting: int
    awaiting_approval: int
    oldest_age_seconds: float


class BacklogView(View):
    model_config = ConfigDict(
        title="Backlog",
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "kind": "ingest", "lane": "default", "queued": 12, "scheduled": 1, "waiting": 0,
                            "awaiting_approval": 0, "oldest_age_seconds": 4.2,
                        }
                    ],
                    "is_complete": True,
                }
            ]
        },
    )  # fmt: skip

    items: list[BacklogRow]
    is_complete: Complete


class ActiveRow(View):
    id: str
    kind: str
    lane: str
    tenant: str
    labels: dict[str, str] | None
    status: str
    attempt: int
    worker: str | None
    phase: str | None
    progress: Any
    claimed_at: AwareDatetime
    started_at: AwareDatetime | None
    active_at: AwareDatetime | None
    cancel_requested_at: AwareDatetime | None
    seconds: float


class PhaseRow(View):
    kind: str
    phase: str | None
    count: int


class ActiveView(View):
    model_config = ConfigDict(
        title="Active",
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "id": ID, "kind": "ingest", "lane": "default", "tenant": "default",
                            "labels": {"project": "x"}, "status": "running", "attempt": 1, "worker": "web-1",
                            "phase": "load", "progress": {"done": 3, "total": 9}, "claimed_at": AT, "started_at": AT,
                            "active_at": AT, "cancel_requested_at": None, "seconds": 8.5,
                        }
                    ],
                    "phases": [{"kind": "ingest", "phase": "load", "count": 1}],
                }
            ]
        },
    )  # fmt: skip

    items: list[ActiveRow]
    phases: list[PhaseRow]


class ErrorRow(View):
    kind: str
    ended: int
    succeeded: int
    succeeded_with_errors: int
    failed: int
    cancelled: int
    error_rate: float


class ErrorsView(View):
    model_config = ConfigDict(
        title="Errors",
        json_schema_extra={
            "examples": [{"items": [{"kind": "ingest", **_COUNTS, "error_rate": 0.25}], "is_complete": True}]
        },
    )

    items: list[ErrorRow]
    is_complete: Complete


class ThroughputRow(View):
    tenant: str
    at: AwareDatetime
    ended: int
    succeeded: int
    succeeded_with_errors: int
    failed: int
    cancelled: int


class ThroughputView(View):
    model_config = ConfigDict(
        title="Throughput",
        json_schema_extra={"examples": [{"items": [{"tenant": "default", "at": AT, **_COUNTS}], "is_complete": True}]},
    )

    items: list[ThroughputRow]
    is_complete: Complete


class RateRow(View):
    lane: str
    per_second: float


class RatesView(View):
    model_config = ConfigDict(
        title="Rates", json_schema_extra={"examples": [{"items": [{"lane": "default", "per_second": 12.5}]}]}
    )

    items: list[RateRow]


class SlowRow(View):
    id: str
    kind: str
    lane: str
    tenant: str
    status: str
    started_at: AwareDatetime
    finished_at: AwareDatetime | None
    worker: str | None
    seconds: float


class SlowView(View):
    model_config = ConfigDict(
        title="Slow",
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "id": ID, "kind": "ingest", "lane": "default", "tenant": "default", "status": "running",
                            "started_at": AT, "finished_at": None, "worker": "web-1", "seconds": 812.5,
                        }
                    ],
                    "is_complete": True,
                }
            ]
        },
    )  # fmt: skip

    items: list[SlowRow]
    is_complete: Complete


@routes.get("/v1/stats/backlog", **operation("workers:view", model=BacklogView))
async def backlog(request: ApiRequest) -> Response:
    """What waits, by kind and lane, most first."""
    return json_response(await request.caller.call(stats_calls.backlog(request.identity.reach)))


@routes.get("/v1/stats/active", **operation("workers:view", "invalid", model=ActiveView))
async def active(  # noqa: PLR0917 - FastAPI passes them by name
    request: ApiRequest,
    kind: Texts = None,
    lane: Texts = None,
    label: Texts = None,
    phase: Annotated[str | None, Query(max_length=500)] = None,
    limit: Limit = 100,
) -> Response:
    """Jobs that workers hold, those held longest first; and how many there are per kind and phase."""
    filters = make_filter(
        status=None, kind=kind, lane=lane, tenant=None, label=label, created_after=None, created_before=None
    )
    call = stats_calls.active(
        request.identity.reach,
        request.identity.only_created_by,
        kinds=filters.kinds,
        lanes=filters.lanes,
        labels=filters.labels,
        phase=phase,
        limit=limit,
    )
    return json_response(await request.caller.call(call))


@routes.get("/v1/stats/errors", **operation("workers:view", "invalid", model=ErrorsView))
async def errors(request: ApiRequest, seconds: Seconds = 3600) -> Response:
    """How the jobs of each kind ended lately, and which share failed or had errors."""
    identity = request.identity
    call = stats_calls.errors(identity.reach, identity.only_created_by, seconds=seconds)
    return json_response(await request.caller.call(call))


@routes.get("/v1/stats/throughput", **operation("workers:view", "invalid", model=ThroughputView))
async def throughput(
    request: ApiRequest,
    seconds: Seconds = 3600,
    bucket_seconds: Annotated[float, Query(ge=1, le=31_536_000, description="The length of one span.")] = 60,
) -> Response:
    """How many jobs of each tenant in reach ended lately, per span of time."""
    identity = request.identity
    call = stats_calls.throughput(
        identity.reach, identity.only_created_by, seconds=seconds, bucket_seconds=bucket_seconds
    )
    return json_response(await request.caller.call(call))


@routes.get("/v1/stats/rates", **operation("workers:view", "invalid", model=RatesView))
async def rates(request: ApiRequest, seconds: Seconds = 10) -> Response:
    """Jobs that ended per second lately, by lane; a lane where none did is left out."""
    found = await request.caller.call(observe_calls.lane_rates(seconds, request.identity.reach))
    return json_response(json.dumps({"items": [{"lane": lane, "per_second": rate} for lane, rate in found.items()]}))


@routes.get("/v1/stats/slow", **operation("workers:view", "invalid", model=SlowView))
async def slow(request: ApiRequest, seconds: Seconds = 3600, kind: Texts = None, limit: Limit = 20) -> Response:
    """The jobs that take longest now, or took lately."""
    identity = request.identity
    call = stats_calls.slow(identity.reach, identity.only_created_by, seconds=seconds, kinds=kind, limit=limit)
    return json_response(await request.caller.call(call))
