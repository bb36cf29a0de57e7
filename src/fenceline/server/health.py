"""Whether the server lives, and whether it can do its work."""

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
    """Asks the database, for all who want to know at the moment: they need no token, and must not use up the pool."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asking: asyncio.Task[object] | None = None

    async def check(self) -> None:
        """Raises what the database raises."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._database.call(calls.system.schema_version()))
            self._asking.add_done_callback(_note)  # those who asked may have gone
        await asyncio.shield(self._asking)


def _note(asking: "asyncio.Task[object]") -> None:
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
        # Anybody may ask; what the driver says names hosts and users.
        log.warning("not ready: %s", str(error) or "the database did not answer in time")
        raise Problem("unavailable", "the database cannot be used: the server's log says why") from error
    return json_response('{"status": "ok"}')
