"""Whether the server lives, and whether it can do its work."""

import asyncio

from fastapi import Response

from fenceline.database import server_calls
from fenceline.errors import FencelineError
from fenceline.server.problems import Problem
from fenceline.server.routing import PUBLIC, ApiRequest, json_response, operation, router
from fenceline.server.schemas import HealthView

routes = router("health")

READY_SECONDS = 3.0


@routes.get(
    "/",
    **operation(
        PUBLIC,
        answers={200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "Pointers."}},
    ),
)
async def root() -> Response:
    """Where to look."""
    return json_response('{"name": "fenceline", "openapi": "/openapi.json"}')


@routes.get("/healthz", **operation(PUBLIC, model=HealthView))
async def healthz() -> Response:
    """The process answers. Asks nothing of the database."""
    return json_response('{"status": "ok"}')


@routes.get("/readyz", **operation(PUBLIC, "unavailable", model=HealthView))
async def readyz(request: ApiRequest) -> Response:
    """The database answers, and its schema fits this server."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await request.caller.call(server_calls.ping())
    except (FencelineError, OSError) as error:
        raise Problem("unavailable", f"the database cannot be used: {str(error) or 'no answer in time'}") from error
    return json_response('{"status": "ok"}')
