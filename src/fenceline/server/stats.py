"""Statistics of the caller's tenant: backlog, active work, errors, throughput, rates, slow jobs."""

from types import GenericAlias
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field, create_model

from fenceline.database import calls
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, Failure, SlowJob, Starts, Throughput
from fenceline.server.filters import Limit, Texts, read_labels
from fenceline.server.routing import ApiRequest, operation, router, value_response
from fenceline.server.schemas import AT, ID
from fenceline.server.views import View, examples, shows

routes = router("stats")

Seconds = Annotated[float, Query(gt=0, le=31_536_000, description="How far back to look, in seconds.")]
BucketSeconds = Annotated[float, Query(ge=1, le=31_536_000, description="The length of one bucket, in seconds.")]
Complete = Annotated[bool, Field(description="False: there were too many rows to read, and the figures are a sample.")]
_COUNTS = {"ended": 12, "succeeded": 9, "succeeded_with_errors": 1, "failed": 2, "cancelled": 0}


def _stats(record: type, row_name: str, title: str, example: dict[str, Any]) -> type[View]:
    """The view of a list of records that may be incomplete."""

    class Described(View):
        model_config = examples({"items": [example], "is_complete": True}, title=title)

    row = shows(record)(create_model(row_name, __base__=View, __module__=__name__))
    fields: dict[str, Any] = {"items": (GenericAlias(list, (row,)), ...), "is_complete": (Complete, ...)}
    return create_model(f"{title}View", __base__=Described, __module__=__name__, **fields)


BacklogView = _stats(
    Backlog, "BacklogRow", "Backlog",
    {
        "kind": "ingest", "lane": "default", "queued": 12, "scheduled": 1, "waiting": 0, "awaiting_approval": 0,
        "oldest_age_seconds": 4.2,
    },
)  # fmt: skip
ErrorsView = _stats(ErrorRate, "ErrorRow", "Errors", {"kind": "ingest", **_COUNTS, "error_rate": 0.25})
ThroughputView = _stats(Throughput, "ThroughputRow", "Throughput", {"tenant": "default", "at": AT, **_COUNTS})
StartsView = _stats(Starts, "StartRow", "Starts", {"at": AT, "started": 12, "p50_seconds": 0.02, "p95_seconds": 1.5})
FailuresView = _stats(
    Failure, "FailureRow", "Failures",
    {
        "kind": "ingest", "type": "ConnectionError", "code": None, "message": "no route to host", "count": 7,
        "last_job": ID, "last_at": AT,
    },
)  # fmt: skip
SlowView = _stats(
    SlowJob, "SlowRow", "Slow",
    {
        "id": ID, "kind": "ingest", "lane": "default", "tenant": "default", "status": "running", "started_at": AT,
        "finished_at": None, "worker": "web-1", "seconds": 812.5,
    },
)  # fmt: skip


@shows(ActiveJob)
class ActiveRow(View): ...


class PhaseRow(View):
    kind: str
    phase: str | None
    count: int


class ActiveView(View):
    model_config = examples(
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
        },
        title="Active",
    )  # fmt: skip

    items: list[ActiveRow]
    phases: list[PhaseRow]


class RateRow(View):
    lane: str
    per_second: float


class RatesView(View):
    model_config = examples({"items": [{"lane": "default", "per_second": 12.5}]}, title="Rates")

    items: list[RateRow]


def _of(request: ApiRequest) -> tuple[str | None, str | None]:
    """The tenant and the creator to whose jobs the caller is limited, if any."""
    return request.identity.reach, request.identity.only_created_by


@routes.get("/v1/stats/backlog", **operation("workers:view", model=BacklogView))
async def backlog(request: ApiRequest) -> Response:
    """Waiting jobs by kind and lane, most first."""
    return await request.answer(calls.stats.stats_waiting(*_of(request)))


@routes.get("/v1/stats/active", **operation("workers:view", model=ActiveView))
async def active(  # noqa: PLR0917 - FastAPI passes them by name
    request: ApiRequest,
    kind: Texts = None,
    lane: Texts = None,
    label: Texts = None,
    phase: Annotated[str | None, Query(max_length=500)] = None,
    limit: Limit = 100,
) -> Response:
    """Jobs that workers hold, the longest held first, and how many there are per kind and phase."""
    labels = read_labels(label)
    return await request.answer(
        calls.stats.stats_active(*_of(request), kinds=kind, lanes=lane, labels=labels, phase=phase, limit=limit)
    )


@routes.get("/v1/stats/errors", **operation("workers:view", model=ErrorsView))
async def errors(request: ApiRequest, seconds: Seconds = 3600) -> Response:
    """How jobs of each kind ended recently, and the share that failed or had errors."""
    return await request.answer(calls.stats.stats_errors(*_of(request), seconds=seconds))


@routes.get("/v1/stats/throughput", **operation("workers:view", model=ThroughputView))
async def throughput(request: ApiRequest, seconds: Seconds = 3600, bucket_seconds: BucketSeconds = 60) -> Response:
    """How many jobs ended recently, per tenant that you may see and time span."""
    return await request.answer(
        calls.stats.stats_throughput(*_of(request), seconds=seconds, bucket_seconds=bucket_seconds)
    )


@routes.get("/v1/stats/starts", **operation("workers:view", model=StartsView))
async def starts(request: ApiRequest, seconds: Seconds = 3600, bucket_seconds: BucketSeconds = 60) -> Response:
    """How long jobs recently waited before they started, per time span: median and 95th percentile."""
    return await request.answer(calls.stats.stats_starts(*_of(request), seconds=seconds, bucket_seconds=bucket_seconds))


@routes.get("/v1/stats/failures", **operation("workers:view", model=FailuresView))
async def failures(request: ApiRequest, seconds: Seconds = 3600, limit: Limit = 20) -> Response:
    """Recent errors of jobs, most frequent first; messages that differ only in numbers count as one."""
    return await request.answer(calls.stats.stats_failures(*_of(request), seconds=seconds, limit=limit))


@routes.get("/v1/stats/rates", **operation("workers:view", model=RatesView))
async def rates(request: ApiRequest, seconds: Seconds = 10) -> Response:
    """Jobs that ended per second recently, by lane; lanes without any are omitted."""
    found = await request.call(calls.lanes.lane_rates(seconds, request.identity.reach))
    return value_response({"items": [{"lane": lane, "per_second": rate} for lane, rate in found.items()]})


@routes.get("/v1/stats/slow", **operation("workers:view", model=SlowView))
async def slow(request: ApiRequest, seconds: Seconds = 3600, kind: Texts = None, limit: Limit = 20) -> Response:
    """The slowest jobs that are running or ended recently."""
    return await request.answer(calls.stats.stats_slow(*_of(request), seconds=seconds, kinds=kind, limit=limit))
