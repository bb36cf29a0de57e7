"""Whether the server is alive, and whether it is ready."""

import asyncio
import logging

from fastapi import Response

from fenceline.database import calls
from fenceline.errors import FencelineError
from fenceline.runtime.database import Database
from fenceline.server.problems import Problem
from fenceline.server.routing import PUBLIC, ApiRequest, json_response, operation, router
from fenceline.server.schemas import HealthView

log = logging.getLogger("fenceline.server")

routes = router("health")

READY_SECONDS = 3.0


class Readiness:
    """One query for all who ask at the same time: they need no token, so they must not use up the pool."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asking: asyncio.Task[object] | None = None

    async def check(self) -> None:
        """Raises what the database raises."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._database.call(calls.system.schema_version()))
            self._asking.add_done_callback(_retrieve_error)  # the requests may have been cancelled
        await asyncio.shield(self._asking)


def _retrieve_error(asking: "asyncio.Task[object]") -> None:
    if not asking.cancelled():
        asking.exception()


@routes.get("/healthz", **operation(PUBLIC, model=HealthView))
async def healthz() -> Response:
    """Whether the process is alive. Does not use the database."""
    return json_response('{"status": "ok"}')


@routes.get("/readyz", **operation(PUBLIC, "unavailable", model=HealthView))
async def readyz(request: ApiRequest) -> Response:
    """Whether the database answers and its schema fits this server."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await request.server.readiness.check()
    except (FencelineError, OSError) as error:
        # Not in the answer, which is public: the driver's message names hosts and users.
        log.warning("not ready: %s", str(error) or "the database did not answer in time")
        raise Problem("unavailable", "the database cannot be used: the server's log says why") from error
    return json_response('{"status": "ok"}')
