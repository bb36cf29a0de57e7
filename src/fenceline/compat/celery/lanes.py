"""Creates the lanes that a program names and the database lacks, as Celery creates missing queues."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fenceline.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.errors import LaneExists, NotFound


class MissingLanes:
    def __init__(self, app: Fenceline) -> None:
        self._app = app
        self._declared: dict[str, Mapping[str, Any]] = {}
        self._source = app_parts(app).source
        self._known: set[str] = set()
        app.on_startup(self.make_declared)

    def declare(self, lane: str, **settings: Any) -> None:
        """Create it with these settings when a worker starts. An existing lane stays as it is."""
        self._declared[lane] = settings

    def make(self, lane: str) -> None:
        """Create it now, because a call names it."""
        source = app_parts(self._app).source
        if source is not self._source:  # a test has switched the app to its own database
            self._source, self._known = source, set()
        if lane in self._known:
            return
        try:
            self._app.sync.lanes.get(lane)
        except NotFound:
            with suppress(LaneExists):  # another process was faster
                self._app.sync.lanes.create(lane, **self._declared.get(lane, {}))
        self._known.add(lane)

    async def make_declared(self) -> None:
        existing = {lane.name for lane in await self._app.lanes.list()}
        for lane in self._declared.keys() - existing:
            with suppress(LaneExists):
                await self._app.lanes.create(lane, **self._declared[lane])
