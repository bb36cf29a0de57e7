"""For operators: lanes, the fleet's status, actions on a job, drain and resume.

Lanes and the drain concern the whole fleet and all tenants, so changing them takes `workers:manage`. Figures and jobs
are those of the caller's tenant only.
"""

import json
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import AwareDatetime, Field, JsonValue, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic_core import from_json

from fenceline.database import calls
from fenceline.database.call import Call, texts_of
from fenceline.errors import UnknownLane
from fenceline.model.job import Lane
from fenceline.server.job_actions import act
from fenceline.server.problems import missing
from fenceline.server.routing import ApiRequest, json_response, operation, router, value_response
from fenceline.server.schemas import AT, ID, Body, JobView, PriorityBody, ReasonBody, VerbBody
from fenceline.server.views import View, examples, list_of, shows

routes = router("admin")

_LANE: dict[str, JsonValue] = {
    "name": "interactive", "kinds": ["ingest"], "slots": 2, "in_use": 1, "depth": 3, "oldest_age_seconds": 4.2,
    "poll_interval_ms": 2000, "stale_timeout_seconds": 1800, "on_stale": "retry", "enabled": True,
    "rate_per_second": None, "burst": None, "fair": False, "ageing_seconds": None, "needs_approval": False,
    "offline_timeout_seconds": None, "updated_at": AT, "suspects_waiting": 0, "suspects_running": 0,
    "delivery": None,
}  # fmt: skip


class LaneBody(Body):
    """Omitted fields keep their value; null clears one (`slots: null` is unlimited)."""

    model_config = examples({"slots": 4, "kinds": ["ingest"]})

    kinds: list[StrictStr] | None = None
    slots: StrictInt | None = None
    poll_interval_ms: StrictInt | None = None
    stale_timeout_seconds: StrictInt | None = None
    offline_timeout_seconds: StrictInt | None = None
    on_stale: Literal["retry", "fail"] | None = None
    enabled: StrictBool | None = None
    rate_per_second: StrictFloat | StrictInt | None = None
    burst: StrictInt | None = None
    fair: StrictBool | None = None
    ageing_seconds: StrictInt | None = None
    needs_approval: StrictBool | None = None
    delivery: StrictStr | None = None


@shows(Lane, without=("default_priority",))
class LaneView(View):
    model_config = examples(_LANE, title="Lane")

    offline_timeout_seconds: Annotated[
        int | None, Field(description="Seconds of silence after which its runners count as offline; null: 60.")
    ]
    needs_approval: Annotated[bool, Field(description="Its jobs, and those of its kinds, wait for approval.")]
    updated_at: AwareDatetime
    suspects_waiting: Annotated[
        int, Field(description="Jobs that shared a process with a crash, and wait to be run alone.")
    ]
    suspects_running: Annotated[int, Field(description="Jobs that are being run alone now for that reason.")]
    delivery: Annotated[
        str | None, Field(description="`arq`: its jobs reach workers by messages; null or `postgres`: they fetch them.")
    ]


class SlotView(View):
    """A job that uses a slot."""

    id: str
    kind: str
    tenant: str
    priority: int
    status: Literal["claimed", "running"]
    attempt: int
    claimed_at: AwareDatetime
    started_at: AwareDatetime | None
    active_at: AwareDatetime | None
    cancel_requested_at: AwareDatetime | None
    phase: str | None
    worker: str | None


class BusyLaneView(LaneView):
    model_config = examples(title="BusyLane")

    jobs: Annotated[
        list[SlotView],
        Field(
            description="The jobs that use its slots, oldest first, at most 100. Empty for a role that sees only its "
            "own jobs: those are in `/v1/stats/active`."
        ),
    ]


class WorkerView(View):
    id: int
    name: str
    host: str | None
    pid: int | None
    version: str | None
    lanes: list[str] | None
    labels: dict[str, object] | None
    started_at: AwareDatetime
    heartbeat_at: AwareDatetime
    status: Annotated[
        Literal["online", "offline"], Field(description="Offline after 60 s of silence, or what its lanes say.")
    ]
    in_use: int
    blocked_seconds: Annotated[float | None, Field(description="For how long its event loop has been blocked.")] = None
    blocked_by: Annotated[
        str | None, Field(description="The job whose handler blocks it; only for those who may see all jobs.")
    ] = None


class FleetView(View):
    model_config = examples(
        {
            "draining": False,
            "lanes": [
                {
                    **_LANE,
                    "jobs": [
                        {
                            "id": ID, "kind": "ingest", "tenant": "default", "priority": 10,
                            "status": "running", "attempt": 1, "claimed_at": AT, "started_at": AT,
                            "active_at": AT, "cancel_requested_at": None, "phase": "load", "worker": "web-1",
                        }
                    ],
                }
            ],
            "workers": [
                {
                    "id": 3, "name": "web-1", "host": "web-1", "pid": 41, "version": "0.2.0", "lanes": None,
                    "labels": None, "started_at": AT, "heartbeat_at": AT, "status": "online", "in_use": 1,
                    "blocked_seconds": None, "blocked_by": None,
                }
            ],
            "runners": [],
        },
        title="Fleet",
    )  # fmt: skip

    draining: bool
    lanes: list[BusyLaneView]
    workers: list[WorkerView]
    runners: list[WorkerView]


class DepthView(View):
    model_config = examples({"depth": 12})

    depth: int


class DrainView(View):
    model_config = examples({"draining": True})

    draining: bool


@routes.get("/v1/admin/workers/lanes", **operation("workers:view", model=list_of(LaneView, has_pages=False)))
async def list_lanes(request: ApiRequest) -> Response:
    """Every lane with its settings, and figures on the tenant's jobs in it."""
    return await request.answer_list(_described(request))


@routes.get("/v1/admin/workers/lanes/{name}", **operation("workers:view", "not_found", model=LaneView))
async def get_lane(request: ApiRequest, name: str) -> Response:
    """One lane."""
    return json_response(await _lane(request, name))


@routes.post("/v1/admin/workers/lanes/{name}", **operation("workers:manage", "conflict", status=201, model=LaneView))
async def create_lane(request: ApiRequest, name: str, body: LaneBody | None = None) -> Response:
    """Create a lane."""
    changes = (body or LaneBody()).model_dump(exclude_unset=True)
    await request.call(calls.lanes.set_lane(name, changes, create=True, **_actor(request)))
    return json_response(await _lane(request, name), 201, {"Location": f"/v1/admin/workers/lanes/{name}"})


@routes.patch("/v1/admin/workers/lanes/{name}", **operation("workers:manage", "not_found", model=LaneView))
async def change_lane(request: ApiRequest, name: str, body: LaneBody) -> Response:
    """Change a lane; takes effect with the next claim. `enabled: false` drains it: no claims, enqueues are accepted."""
    changes = body.model_dump(exclude_unset=True)
    await _lane(request, name)
    try:
        await request.call(calls.lanes.set_lane(name, changes, create=False, **_actor(request)))
    except UnknownLane as error:
        raise missing("lane", name) from error
    return json_response(await _lane(request, name))


@routes.delete("/v1/admin/workers/lanes/{name}", **operation("workers:manage", "not_found", "conflict", status=204))
async def delete_lane(request: ApiRequest, name: str) -> None:
    """Delete a lane that has no unfinished jobs."""
    try:
        await request.call(calls.lanes.delete_lane(name, **_actor(request)))
    except UnknownLane as error:
        raise missing("lane", name) from error


def _described(request: ApiRequest, name: str | None = None) -> Call[list[Lane]]:
    # The default priority of a lane is a setting of the database, for those who run it.
    return calls.lanes.describe_lanes(name, request.identity.reach, without=["default_priority"])


async def _lane(request: ApiRequest, name: str) -> str:
    found = await request.call(texts_of(_described(request, name)))
    if not found:
        raise missing("lane", name)
    return found[0]


def _actor(request: ApiRequest) -> dict[str, str]:
    return {"actor": request.identity.actor, "actor_tenant": request.identity.tenant}


@routes.get("/v1/admin/workers/status", **operation("workers:view", model=FleetView))
async def fleet_status(request: ApiRequest) -> Response:
    """The fleet now: lanes with the jobs that use their slots, workers and runners with their last heartbeat."""
    found = await request.call(calls.system.fleet_status(request.identity.reach))
    if request.identity.own_jobs:
        fleet = from_json(found)
        for lane in fleet["lanes"]:
            lane["jobs"] = []
        found = json.dumps(fleet)
    return json_response(found)


@routes.get("/v1/admin/workers/depth", **operation("workers:view", model=DepthView))
async def depth(
    request: ApiRequest, lane: Annotated[str | None, Query(description="Only this lane.")] = None
) -> Response:
    """How many of the tenant's jobs a worker could start now: one number, for autoscalers. Drained lanes count 0."""
    return value_response({"depth": await request.call(calls.lanes.depth(lane, request.identity.reach))})


@routes.post(
    "/v1/admin/workers/jobs/{id}/cancel", **operation("jobs:manage", "not_found", "wrong_status", model=JobView)
)
async def cancel_job(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Cancel a job, or with `force` take it from its worker at once."""
    return await act(request, id, "cancel", body)


@routes.patch(
    "/v1/admin/workers/jobs/{id}/priority", **operation("jobs:manage", "not_found", "wrong_status", model=JobView)
)
async def reprioritise_job(request: ApiRequest, id: str, body: PriorityBody) -> Response:
    """Change the priority of a job that no worker holds."""
    return await act(request, id, "reprioritise", priority=body.priority)


@routes.post("/v1/admin/drain", **operation("workers:manage", model=DrainView))
async def drain(request: ApiRequest, body: ReasonBody | None = None) -> Response:
    """Refuse new jobs from outside (503 `draining`); claims, children, retries of attempts and schedules go on."""
    return await _drain(request, body, draining=True)


@routes.post("/v1/admin/resume", **operation("workers:manage", model=DrainView))
async def resume(request: ApiRequest, body: ReasonBody | None = None) -> Response:
    """Accept new jobs again."""
    return await _drain(request, body, draining=False)


async def _drain(request: ApiRequest, body: ReasonBody | None, *, draining: bool) -> Response:
    reason = body.reason if body else None
    await request.call(calls.system.drain_system(draining, reason=reason, **_actor(request)))
    return value_response({"draining": draining})
