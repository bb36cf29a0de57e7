"""Jobs: enqueue, list, show one."""

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Response

from fenceline.client.arguments import encode_plain
from fenceline.client.enqueue_options import EnqueueOptions, encode_options
from fenceline.database import calls
from fenceline.errors import InvalidArgs, NotFound
from fenceline.model.identity import Identity
from fenceline.model.job import JobFilter
from fenceline.model.public_id import format_id
from fenceline.server.filters import Cursor, Fields, Limit, ListQuery, read_cursor, read_fields
from fenceline.server.problems import invalid
from fenceline.server.routing import ApiRequest, json_response, operation, page_response, read_job_id, router
from fenceline.server.schemas import EnqueueBody, JobList, JobView

routes = router("jobs")

#: Options that do not slow an enqueue down. Those that may wait for somebody else's transaction (dedupe keys, locks) or
#: take a while (dependencies on a thousand jobs, hashing a snapshot) must not hold up the other jobs of a batch.
_QUICK = frozenset(
    {
        "lane", "priority", "run_at", "run_in", "expires_at", "max_attempts", "labels", "key", "key_limit",
        "needs_approval", "identity", "runner",
    }
)  # fmt: skip
_QUICK_BYTES = 65_536
LOCATION = {"Location": {"description": "The job's path.", "schema": {"type": "string"}}}
ENQUEUED: dict[int, dict[str, Any]] = {
    200: {"description": "The job that was there already.", "model": JobView, "headers": LOCATION},
    202: {"description": "Enqueued.", "headers": LOCATION},
}


@routes.post(
    "/v1/jobs",
    **operation(
        "jobs:enqueue", "not_found", "resource_locked", "key_taken", "idempotency_mismatch", "draining",
        status=202, model=JobView,
        answers=ENQUEUED,
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
    handler = request.server.handler(body.kind)
    if handler is not None and handler.snapshot_provider is not None and "snapshot" not in options:
        # In a thread: like `validate=`, it may read files or call a service.
        options["snapshot"] = await asyncio.to_thread(handler.current_snapshot, handler.arguments.decode(args))
    submission = calls.enqueue.Submission(
        kind=body.kind,
        args=args,
        options=bound(encode_chosen(options, request.identity.role, is_transaction=True), request.identity),
        actor=request.identity.actor,
        tenant=request.identity.tenant,
        defaults=defaults,
        created_by=request.identity.only_created_by,
    )
    if options.keys() <= _QUICK and len(args) <= _QUICK_BYTES:
        made = await request.server.submitter.submit(submission)
    else:
        made = await request.call(calls.enqueue.submit_job(submission, repeatable=bool(idempotency_key)))
    return json_response(made.job, 202 if made.created else 200, {"Location": f"/v1/jobs/{made.id}"})


def encode_chosen(options: Mapping[str, Any], role: str | None = None, *, is_transaction: bool = False) -> str:
    """A body's options as JSON text."""
    named = EnqueueOptions(**options)  # type: ignore[typeddict-item]  # names are those of the body
    return encode_options(named, actor_role=role, is_transaction=is_transaction)


def bound(options: str, identity: Identity) -> str:
    """Options as JSON text, with the token's bounds: the database checks them, as it knows where a job would go."""
    if not identity.is_bound:
        return options
    limits = {"bound_lanes": identity.lanes, "bound_kinds": identity.kinds}
    named = {name: sorted(limit) for name, limit in limits.items() if limit is not None}
    return json.dumps({**json.loads(options), **named})


async def encode_args(request: ApiRequest, kind: str, args: Mapping[str, Any]) -> tuple[str, str | None]:
    """Args as JSON text and the decorator's defaults; checked by the handler if the server knows it."""
    handler = request.server.handler(kind)
    if handler is None:
        return encode_plain(kind, args), None
    if handler.validate is None:
        return handler.encode_args(args), handler.defaults
    try:
        # In a thread: the application's own check may block.
        return await asyncio.to_thread(handler.encode_args, args), handler.defaults
    except (NotFound, InvalidArgs):
        raise
    except ValueError as error:
        raise invalid("args", str(error), f"args of kind {kind!r}: {error}") from error


@routes.get("/v1/jobs", **operation("jobs:read", model=JobList))
async def list_jobs(
    request: ApiRequest, filters: ListQuery, limit: Limit = 50, cursor: Cursor = None, fields: Fields = None
) -> Response:
    """Jobs, newest first. Values of one filter are alternatives; labels, as `name:value`, must all match.

    New jobs do not move what a cursor points at. A page has about 4 MiB at most, and may end before `limit`. Args and
    results are left out unless `fields` asks for them; values of more than 16 KiB are `{"$cut": {"bytes": …}}`.
    """
    return await _page(request, filters, limit=limit, cursor=read_cursor(cursor), fields=read_fields(fields))


@routes.get("/v1/jobs/{id}/children", **operation("jobs:read", "not_found", model=JobList))
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
    await request.call(calls.jobs.visible_job_id(parent, request.identity))
    return await _page(request, JobFilter(parent=format_id(parent)), limit=limit, cursor=place, fields=wanted)


async def _page(
    request: ApiRequest, filters: JobFilter, *, limit: int, cursor: int | None, fields: list[str]
) -> Response:
    items, after = await request.call(
        calls.jobs.page_texts(filters, request.identity, limit=limit, cursor=cursor, fields=fields)
    )
    return page_response(items, after)


@routes.get("/v1/jobs/{id}", **operation("jobs:read", "not_found", model=JobView))
async def get_job(
    request: ApiRequest,
    id: str,
    fields: Annotated[Literal["snapshot"] | None, Query(description="What else to show.")] = None,
) -> Response:
    """One job. Missing, foreign, expired and malformed ids are answered alike.

    `fields=snapshot` adds the snapshot it was enqueued with, which may be long.
    """
    call = calls.jobs.describe_job(read_job_id(id), request.identity, with_snapshot=fields == "snapshot")
    return await request.answer(call)
