"""Lanes that a program names and nobody has made: Celery makes missing queues, so they are made here."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fenceline.client.app import Fenceline
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
        """Have it made when a worker starts, with these settings; one that is there stays as it is."""
        self._declared[lane] = settings

    def make(self, lane: str) -> None:
        """Make it now: a call names it."""
        source = app_parts(self._app).source
        if source is not self._source:  # a test has a database of its own
            self._source, self._known = source, set()
        if lane in self._known:
            return
        try:
            self._app.sync.lanes.get(lane)
        except NotFound:
            with suppress(LaneExists):  # somebody else was quicker
                self._app.sync.lanes.create(lane, **self._declared.get(lane, {}))
        self._known.add(lane)

    async def make_declared(self) -> None:
        there = {lane.name for lane in await self._app.lanes.list()}
        for lane in self._declared.keys() - there:
            with suppress(LaneExists):
                await self._app.lanes.create(lane, **self._declared[lane])
