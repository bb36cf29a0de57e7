"""What can be done with one job: approve, reject, retry, cancel, run now, move, erase, delete."""

from fastapi import Response
from pydantic_core import from_json

from fenceline.database import calls
from fenceline.database.call import text_of
from fenceline.errors import UnknownLane
from fenceline.server.jobs import LOCATION
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import JobView, MoveBody, ReasonBody, VerbBody

routes = router("jobs")

_WITH_BODY = ("not_found", "wrong_status", "too_large", "unsupported_media_type", "invalid")


def refuse_bound(request: ApiRequest) -> None:
    """A retry makes a job of any kind, anywhere. Raises Problem `forbidden`."""
    if request.identity.is_bound:
        raise Problem(
            "forbidden",
            "this token is limited to certain lanes or kinds: it can enqueue new jobs, but not retry old ones",
        )


async def act(
    request: ApiRequest,
    job_id: str,
    verb: str,
    *,
    reason: str | None = None,
    force: bool = False,
    priority: int | None = None,
) -> Response:
    """Do it as the one who asks, and answer with the job as it is then; 204 when there is none left."""
    if verb == "retry":
        refuse_bound(request)
    call = calls.jobs.act_on_job(
        read_job_id(job_id), verb, request.identity, reason=reason, force=force, priority=priority
    )
    job = await request.database.call(call)
    return Response(status_code=204) if job is None else json_response(job)


@routes.post("/v1/jobs/{id}/approve", **operation("jobs:approve", *_WITH_BODY, model=JobView))
async def approve(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Approve a job that awaits approval."""
    return await act(request, id, "approve", reason=body.reason if body else None)


@routes.post("/v1/jobs/{id}/reject", **operation("jobs:approve", *_WITH_BODY, model=JobView))
async def reject(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """End a job that awaits approval: `cancelled`, with code `rejected` and the reason."""
    return await act(request, id, "reject", reason=body.reason if body else None)


@routes.post("/v1/jobs/{id}/cancel", **operation("jobs:cancel", *_WITH_BODY, model=JobView))
async def cancel(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Cancel a job: at once if no worker holds it, else by asking its handler to stop; with `force` at once."""
    body = body or VerbBody()
    return await act(request, id, "cancel", reason=body.reason, force=body.force)


@routes.post(
    "/v1/jobs/{id}/retry",
    **operation(
        "jobs:enqueue",
        *_WITH_BODY,
        "resource_locked",
        "draining",
        status=202,
        model=JobView,
        answers={202: {"description": "The new job.", "headers": LOCATION}},
    ),
)
async def retry(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Run a finished job again, as a new job with the same args and snapshot; `retry_of` names the old one."""
    answer = await act(request, id, "retry", reason=body.reason if body else None)
    answer.status_code = 202
    answer.headers["Location"] = f"/v1/jobs/{from_json(bytes(answer.body))['id']}"
    return answer


@routes.post("/v1/jobs/{id}/run-now", **operation("jobs:manage", *_WITH_BODY, model=JobView))
async def run_now(request: ApiRequest, id: str, body: ReasonBody | None = None) -> Response:
    """Start a job now that is scheduled or waits for its retry."""
    return await act(request, id, "run_now", reason=body.reason if body else None)


@routes.post("/v1/jobs/{id}/move", **operation("jobs:manage", *_WITH_BODY, model=JobView))
async def move(request: ApiRequest, id: str, body: MoveBody) -> Response:
    """Move a job that no worker holds to another lane; it keeps its priority and its place in time."""
    job_id, identity = read_job_id(id), request.identity
    await request.database.call(calls.jobs.visible_job_id(job_id, identity))
    call = calls.jobs.move_job(job_id, body.lane, actor=identity.actor, reason=body.reason, tenant=identity.reach)
    try:
        await request.database.call(call)
    except UnknownLane as error:
        raise Problem("invalid", str(error), errors=[{"field": "lane", "message": str(error)}]) from error
    return json_response(await request.database.call(text_of(calls.jobs.describe_job(job_id, identity))))


@routes.post("/v1/jobs/{id}/erase", **operation("jobs:cancel", *_WITH_BODY, model=JobView))
async def erase(request: ApiRequest, id: str, body: ReasonBody | None = None) -> Response:
    """Permanently replace the args of a finished job by a marker; results and logs stay. It cannot be retried."""
    return await act(request, id, "erase", reason=body.reason if body else None)


@routes.delete(
    "/v1/jobs/{id}",
    **operation(
        "jobs:cancel",
        "not_found",
        "wrong_status",
        "invalid",
        model=JobView,
        answers={200: {"description": "Cancelled, or asked to stop."}, 204: {"description": "Deleted."}},
    ),
)
async def delete(request: ApiRequest, id: str) -> Response:
    """Cancel an unfinished job; delete a finished one with everything stored about it."""
    return await act(request, id, "remove")
