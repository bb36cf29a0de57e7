"""Schedules: look at them, change, pause and run them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from fenceline.client.job import Job
from fenceline.client.schedule_decorator import ScheduleSettings, encode_settings
from fenceline.client.verbs import Verbs
from fenceline.database import calls
from fenceline.errors import UnknownSchedule
from fenceline.model.schedule import Schedule, Tick


class Schedules(Verbs):
    """The schedules in the database. Settings made here override those in the code, and last."""

    __slots__ = ()

    async def list(self) -> list[Schedule]:
        """All schedules, by name."""
        return await self._call(calls.schedules.schedules())

    async def get(self, name: str) -> Schedule:
        """One schedule. Raises UnknownSchedule."""
        found = await self._call(calls.schedules.schedules(name))
        if not found:
            raise UnknownSchedule(f"schedule {name!r} does not exist")
        return found[0]

    async def create(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Create a schedule. Raises InvalidSchedule, also when it exists."""
        return await self._set(name, settings, actor, create=True)

    async def set(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Change settings of a schedule, or create it; None undoes one. Raises InvalidSchedule."""
        return await self._set(name, settings, actor, create=None)

    async def pause(self, name: str, *, actor: str | None = None) -> Schedule:
        """Stop a schedule until it is resumed. Raises UnknownSchedule."""
        return await self._set(name, {"paused": True}, actor, create=False)

    async def resume(self, name: str, *, actor: str | None = None) -> Schedule:
        """Let a schedule go on from now; ticks during the pause are skipped. Raises UnknownSchedule."""
        return await self._set(name, {"paused": False}, actor, create=False)

    async def run(self, name: str, *, actor: str | None = None) -> Job[Any]:
        """Enqueue its job now, regardless of ticks, windows and pauses. Raises UnknownSchedule."""
        made = await self._call(calls.schedules.run_schedule(name, actor=self._actor(actor)))
        return Job(self._get_database, made.job_id, created=made.created)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a schedule; one declared in code comes back when its worker starts. Raises UnknownSchedule."""
        await self._call(calls.schedules.delete_schedule(name, actor=self._actor(actor)))

    async def next_runs(self, name: str, count: int = 5) -> Sequence[datetime]:
        """The next times at which it fires, in its own time zone. Raises UnknownSchedule."""
        return (await self.get(name)).next_runs(count)

    async def ticks(self, name: str, limit: int = 50) -> Sequence[Tick]:
        """What became of its ticks, newest first."""
        return await self._call(calls.schedules.list_ticks(name, limit))

    async def _set(self, name: str, settings: ScheduleSettings, actor: str | None, *, create: bool | None) -> Schedule:
        encoded = encode_settings(settings)
        return await self._call(calls.schedules.set_schedule(name, encoded, actor=self._actor(actor), create=create))
