"""Jobs: enqueue, list, look at one."""

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Response

from fenceline.client.app_parts import app_parts
from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.client.handler_parts import handler_parts
from fenceline.database import calls
from fenceline.database.call import text_of
from fenceline.errors import InvalidArgs, NotFound
from fenceline.model.identity import Identity
from fenceline.model.job import JobFilter
from fenceline.model.public_id import format_id
from fenceline.server.filters import Cursor, Fields, Limit, ListQuery, read_cursor, read_fields
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, page_response, read_job_id, router
from fenceline.server.schemas import EnqueueBody, JobList, JobView

routes = router("jobs")

#: Options whose enqueue takes no longer than a plain one. What may wait for somebody else's transaction (keys, locks),
#: or take its time (a thousand jobs to wait for, a snapshot to be hashed), must not hold up others.
_QUICK = frozenset(
    {
        "lane", "priority", "run_at", "run_in", "expires_at", "max_attempts", "labels", "key", "key_limit",
        "needs_approval", "identity", "runner",
    }
)  # fmt: skip
_QUICK_BYTES = 65_536
LOCATION = {"Location": {"description": "The job's path.", "schema": {"type": "string"}}}


@routes.post(
    "/v1/jobs",
    **operation(
        "jobs:enqueue", "not_found", "resource_locked", "key_taken", "too_large", "unsupported_media_type", "invalid",
        "idempotency_mismatch", "draining",
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
    """Enqueue a job. It is committed before the answer is sent."""
    options = body.chosen_options()
    if idempotency_key:
        options["idempotency_key"] = idempotency_key
    args, defaults = await encode_args(request, body.kind, body.args or {})
    handler = app_parts(request.server.app).handlers.get(body.kind)
    if handler is not None and handler_parts(handler).snapshot_provider is not None and "snapshot" not in options:
        # As `validate=`: it may read files, or ask a service.
        options["snapshot"] = await asyncio.to_thread(
            handler_parts(handler).current_snapshot, handler_parts(handler).arguments.decode(args)
        )
    asked = calls.enqueue.Submission(
        kind=body.kind,
        args=args,
        options=bound(encode_chosen(options, request.identity.role, is_transaction=True), request.identity),
        actor=request.identity.actor,
        tenant=request.identity.tenant,
        defaults=defaults,
        created_by=request.identity.only_created_by,
    )
    if options.keys() <= _QUICK and len(args) <= _QUICK_BYTES:
        made = await request.server.submitter.submit(asked)
    else:
        made = await request.database.call(calls.enqueue.submit_job(asked, repeatable=bool(idempotency_key)))
    return json_response(made.job, 202 if made.created else 200, {"Location": f"/v1/jobs/{made.id}"})


def encode_chosen(options: Mapping[str, Any], role: str | None = None, *, is_transaction: bool = False) -> str:
    """Options of a body as JSON text."""
    named = EnqueueOptions(**options)  # type: ignore[typeddict-item]  # names are those of the body
    return encode_options(named, actor_role=role, is_transaction=is_transaction)


def bound(options: str, identity: Identity) -> str:
    """Options as JSON text, with what the token is bound to: the database knows where a job would go."""
    if not identity.is_bound:
        return options
    limits = {"bound_lanes": identity.lanes, "bound_kinds": identity.kinds}
    named = {name: sorted(limit) for name, limit in limits.items() if limit is not None}
    return json.dumps({**json.loads(options), **named})


async def encode_args(request: ApiRequest, kind: str, args: Mapping[str, Any]) -> tuple[str, str | None]:
    """Args as JSON text and what the decorator says, by the handler where the server knows it."""
    handler = app_parts(request.server.app).handlers.get(kind)
    if handler is None:
        return encode_plain(kind, args), None
    if not handler_parts(handler).has_validate:
        return handler_parts(handler).encode_args(args), handler_parts(handler).defaults
    try:
        # The application's own check may look something up, and block.
        return await asyncio.to_thread(handler_parts(handler).encode_args, args), handler_parts(handler).defaults
    except (NotFound, InvalidArgs):
        raise
    except ValueError as error:
        raise Problem(
            "invalid", f"args of kind {kind!r}: {error}", errors=[{"field": "args", "message": str(error)}]
        ) from error


@routes.get("/v1/jobs", **operation("jobs:read", "invalid", model=JobList))
async def list_jobs(
    request: ApiRequest, filters: ListQuery, limit: Limit = 50, cursor: Cursor = None, fields: Fields = None
) -> Response:
    """Jobs, newest first. Values of one filter are alternatives; labels, as `name:value`, must all match.

    New jobs do not move what a cursor points at. A page has about 4 MiB at most, and may end before `limit`. Args and
    results are left out unless `fields` asks for them; values of more than 16 KiB are `{"$cut": {"bytes": …}}`.
    """
    return await _page(request, filters, limit=limit, cursor=read_cursor(cursor), fields=read_fields(fields))


@routes.get("/v1/jobs/{id}/children", **operation("jobs:read", "not_found", "invalid", model=JobList))
async def list_children(
    request: ApiRequest,
    id: str,
    limit: Limit = 50,
    cursor: Cursor = None,
    fields: Fields = None,
) -> Response:
    """The jobs that its handler enqueued, newest first, as in the list of all jobs."""
    place, wanted = read_cursor(cursor), read_fields(fields)
    parent = read_job_id(id)
    await request.database.call(calls.jobs.visible_job_id(parent, request.identity))
    return await _page(request, JobFilter(parent=format_id(parent)), limit=limit, cursor=place, fields=wanted)


async def _page(
    request: ApiRequest, filters: JobFilter, *, limit: int, cursor: int | None, fields: list[str]
) -> Response:
    items, after = await request.database.call(
        calls.jobs.page_texts(filters, request.identity, limit=limit, cursor=cursor, fields=fields)
    )
    return page_response(items, after)


@routes.get("/v1/jobs/{id}", **operation("jobs:read", "not_found", "invalid", model=JobView))
async def get_job(
    request: ApiRequest,
    id: str,
    fields: Annotated[Literal["snapshot"] | None, Query(description="What else to show.")] = None,
) -> Response:
    """One job. Missing, foreign, expired and malformed ids are answered alike.

    `fields=snapshot` adds the snapshot it was enqueued with, which may be long.
    """
    call = calls.jobs.describe_job(read_job_id(id), request.identity, with_snapshot=fields == "snapshot")
    return json_response(await request.database.call(text_of(call)))
