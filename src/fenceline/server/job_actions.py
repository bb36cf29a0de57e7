"""Actions on one job: approve, reject, retry, cancel, run now, move, erase, delete."""

from fastapi import Response
from pydantic_core import from_json

from fenceline.database import calls
from fenceline.errors import UnknownLane
from fenceline.server.jobs import LOCATION
from fenceline.server.problems import Problem, invalid
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import JobView, MoveBody, ReasonBody, VerbBody

routes = router("jobs")


def refuse_bound(request: ApiRequest) -> None:
    """A retry could create a job of any kind in any lane. Raises Problem `forbidden`."""
    if request.identity.is_bound:
        raise Problem(
            "forbidden",
            "this token is limited to certain lanes or kinds: it can enqueue new jobs, but not retry old ones",
        )


async def act(
    request: ApiRequest, job_id: str, verb: str, body: ReasonBody | None = None, *, priority: int | None = None
) -> Response:
    """Act as the caller, and answer with the job as it is afterwards; 204 if it was deleted."""
    if verb == "retry":
        refuse_bound(request)
    call = calls.jobs.act_on_job(
        read_job_id(job_id),
        verb,
        request.identity,
        reason=body.reason if body else None,
        force=isinstance(body, VerbBody) and body.force,
        priority=priority,
    )
    job = await request.call(call)
    return Response(status_code=204) if job is None else json_response(job)


@routes.post("/v1/jobs/{id}/approve", **operation("jobs:approve", "not_found", "wrong_status", model=JobView))
async def approve(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Approve a job that awaits approval."""
    return await act(request, id, "approve", body)


@routes.post("/v1/jobs/{id}/reject", **operation("jobs:approve", "not_found", "wrong_status", model=JobView))
async def reject(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """End a job that awaits approval: `cancelled`, with code `rejected` and the reason."""
    return await act(request, id, "reject", body)


@routes.post("/v1/jobs/{id}/cancel", **operation("jobs:cancel", "not_found", "wrong_status", model=JobView))
async def cancel(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Cancel a job: at once if no worker holds it, else by asking its handler to stop; with `force` at once."""
    return await act(request, id, "cancel", body)


@routes.post(
    "/v1/jobs/{id}/retry",
    **operation(
        "jobs:enqueue", "not_found", "wrong_status", "resource_locked", "draining",
        status=202, model=JobView, answers={202: {"description": "The new job.", "headers": LOCATION}},
    ),
)  # fmt: skip
async def retry(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:
    """Run a finished job again, as a new job with the same args and snapshot; `retry_of` names the old one."""
    answer = await act(request, id, "retry", body)
    answer.status_code = 202
    answer.headers["Location"] = f"/v1/jobs/{from_json(bytes(answer.body))['id']}"
    return answer


@routes.post("/v1/jobs/{id}/run-now", **operation("jobs:manage", "not_found", "wrong_status", model=JobView))
async def run_now(request: ApiRequest, id: str, body: ReasonBody | None = None) -> Response:
    """Start a job now that is scheduled for later or waits for its retry."""
    return await act(request, id, "run_now", body)


@routes.post("/v1/jobs/{id}/move", **operation("jobs:manage", "not_found", "wrong_status", model=JobView))
async def move(request: ApiRequest, id: str, body: MoveBody) -> Response:
    """Move a job that no worker holds to another lane; it keeps its priority and its place in time."""
    job_id, identity = read_job_id(id), request.identity
    await request.call(calls.jobs.visible_job_id(job_id, identity))
    call = calls.jobs.move_job(job_id, body.lane, actor=identity.actor, reason=body.reason, tenant=identity.reach)
    try:
        await request.call(call)
    except UnknownLane as error:
        raise invalid("lane", str(error), str(error)) from error
    return await request.answer(calls.jobs.describe_job(job_id, identity))


@routes.post("/v1/jobs/{id}/erase", **operation("jobs:cancel", "not_found", "wrong_status", model=JobView))
async def erase(request: ApiRequest, id: str, body: ReasonBody | None = None) -> Response:
    """Permanently replace the args of a finished job by a marker; results and logs stay. It cannot be retried then."""
    return await act(request, id, "erase", body)


@routes.delete(
    "/v1/jobs/{id}",
    **operation(
        "jobs:cancel", "not_found", "wrong_status", model=JobView,
        answers={200: {"description": "Cancelled, or asked to stop."}, 204: {"description": "Deleted."}},
    ),
)  # fmt: skip
async def delete(request: ApiRequest, id: str) -> Response:
    """Cancel an unfinished job; delete a finished one with everything stored about it."""
    return await act(request, id, "remove")
