"""What can be done with one job: approve, reject, retry, cancel, erase, delete."""

from fastapi import Response
from pydantic_core import from_json

from fenceline.database import server_calls
from fenceline.server.jobs import LOCATION
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import JobView, ReasonBody, VerbBody

routes = router("jobs")

_WITH_BODY = ("not_found", "wrong_status", "too_large", "unsupported_media_type", "invalid")


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
    call = server_calls.act_on_job(
        read_job_id(job_id), verb, request.identity, reason=reason, force=force, priority=priority
    )
    job = await request.caller.call(call)
    return Response(status_code=204) if job is None else json_response(job)


@routes.post("/v1/jobs/{id}/approve", **operation("jobs:approve", *_WITH_BODY, model=JobView))
async def approve(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:  # noqa: A002 - the contract's name
    """Let a job go on that awaits approval."""
    return await act(request, id, "approve", reason=body.reason if body else None)


@routes.post("/v1/jobs/{id}/reject", **operation("jobs:approve", *_WITH_BODY, model=JobView))
async def reject(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:  # noqa: A002 - as above
    """End a job that awaits approval: `cancelled`, with code `rejected` and the reason."""
    return await act(request, id, "reject", reason=body.reason if body else None)


@routes.post("/v1/jobs/{id}/cancel", **operation("jobs:cancel", *_WITH_BODY, model=JobView))
async def cancel(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:  # noqa: A002 - as above
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
async def retry(request: ApiRequest, id: str, body: VerbBody | None = None) -> Response:  # noqa: A002 - as above
    """Run a finished job again, as a new job with the same args and snapshot; `retry_of` names the old one."""
    answer = await act(request, id, "retry", reason=body.reason if body else None)
    answer.status_code = 202
    answer.headers["Location"] = f"/v1/jobs/{from_json(bytes(answer.body))['id']}"
    return answer


@routes.post("/v1/jobs/{id}/erase", **operation("jobs:cancel", *_WITH_BODY, model=JobView))
async def erase(request: ApiRequest, id: str, body: ReasonBody | None = None) -> Response:  # noqa: A002 - as above
    """Replace the args of a finished job by a marker, for good; results and logs stay. It cannot be retried then."""
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
async def delete(request: ApiRequest, id: str) -> Response:  # noqa: A002 - as above
    """Cancel a job that is unfinished; delete one that is finished, with all that is kept of it."""
    return await act(request, id, "remove")
