"""Jobs: enqueue, list, look at one."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header, Response

from fenceline.client.arguments import encode_plain
from fenceline.client.options import EnqueueOptions, encode_options
from fenceline.database import server_calls
from fenceline.errors import InvalidArgs, NotFound
from fenceline.server.problems import Problem
from fenceline.server.queries import Cursor, JobFilter, Limit, read_cursor
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import EnqueueBody, JobList, JobView

routes = router("jobs")

#: Options whose enqueue may wait for somebody else's transaction: such a one must not hold up others.
_WAITING = frozenset({"dedupe_key", "idempotency_key", "resource_lock"})
LOCATION = {"Location": {"description": "The job's path.", "schema": {"type": "string"}}}


@routes.post(
    "/v1/jobs",
    **operation(
        "jobs:enqueue", "not_found", "resource_locked", "too_large", "unsupported_media_type", "invalid", "draining",
        status=202, model=JobView,
        answers={
            200: {"description": "The job that was there already.", "model": JobView, "headers": LOCATION},
            202: {"description": "Enqueued.", "headers": LOCATION},
        },
    ),
)  # fmt: skip
async def enqueue(
    request: ApiRequest,
    body: EnqueueBody,
    idempotency_key: Annotated[
        str | None,
        Header(description="The same request sent again within a day returns the first job.", max_length=512),
    ] = None,
) -> Response:
    """Enqueue a job. It is committed when the answer comes."""
    options = body.chosen_options()
    if idempotency_key:
        options["idempotency_key"] = idempotency_key
    args, defaults = await encode_args(request, body.kind, body.args or {})
    handler = request.server.app.handlers.get(body.kind)
    if handler is not None and handler.snapshot_provider is not None and "snapshot" not in options:
        # As `validate=`: it may read files, or ask a service.
        options["snapshot"] = await asyncio.to_thread(handler.current_snapshot, handler.arguments.decode(args))
    asked = server_calls.Submission(
        kind=body.kind,
        args=args,
        options=encode_chosen(options),
        actor=request.identity.actor,
        tenant=request.identity.tenant,
        defaults=defaults,
    )
    if _WAITING.isdisjoint(options):
        made = await request.server.submitter.submit(asked)
    else:
        made = await request.caller.call(server_calls.submit_job(asked, repeatable=bool(idempotency_key)))
    return json_response(made.job, 202 if made.created else 200, {"Location": f"/v1/jobs/{made.id}"})


def encode_chosen(options: Mapping[str, Any]) -> str:
    """Options of a body as JSON text."""
    return encode_options(EnqueueOptions(**options))  # type: ignore[typeddict-item]  # names are those of the body


async def encode_args(request: ApiRequest, kind: str, args: Mapping[str, Any]) -> tuple[str, str | None]:
    """Args as JSON text and what the decorator says, by the handler where the server knows it."""
    handler = request.server.app.handlers.get(kind)
    if handler is None:
        return encode_plain(kind, args), None
    if not handler.has_validate:
        return handler.encode_args(args), handler.defaults
    try:
        # The application's own check may look something up, and block.
        return await asyncio.to_thread(handler.encode_args, args), handler.defaults
    except (NotFound, InvalidArgs):
        raise
    except ValueError as error:
        raise Problem(
            "invalid", f"args of kind {kind!r}: {error}", errors=[{"field": "args", "message": str(error)}]
        ) from error


@routes.get("/v1/jobs", **operation("jobs:read", "invalid", model=JobList))
async def list_jobs(request: ApiRequest, filters: JobFilter, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Jobs, newest first. Values of one filter are alternatives; labels, as `name:value`, must all match.

    New jobs do not move what a cursor points at.
    """
    page = await request.caller.call(
        server_calls.list_jobs(filters, request.identity, limit=limit, cursor=read_cursor(cursor))
    )
    cursor = "null" if page.next_cursor is None else f'"{page.next_cursor}"'
    return json_response(f'{{"items": {page.items}, "next_cursor": {cursor}}}')


@routes.get("/v1/jobs/{id}", **operation("jobs:read", "not_found", "invalid", model=JobView))
async def get_job(request: ApiRequest, id: str) -> Response:  # noqa: A002 - the contract's name
    """One job. Missing, foreign, expired and malformed ids are answered alike."""
    return json_response(await request.caller.call(server_calls.get_job(read_job_id(id), request.identity)))
