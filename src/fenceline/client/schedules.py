"""What can be done with schedules, asynchronously.

The blocking twin, `sync_schedule_verbs.py`, is generated from this file by `scripts/generate_sync.py`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from fenceline.client.job import Job
from fenceline.client.schedule_decorator import ScheduleSettings, encode_settings
from fenceline.database import calls
from fenceline.errors import UnknownSchedule
from fenceline.model.schedule import Schedule, Tick
from fenceline.runtime.database import GetDatabase


class Schedules:
    """The schedules in the database, and what operators say about them: stronger than the code, and lasting."""

    __slots__ = ("_get_database",)

    def __init__(self, get_database: GetDatabase) -> None:
        self._get_database = get_database

    async def list(self) -> list[Schedule]:
        """All schedules, by name."""
        return await self._get_database().call(calls.schedules.schedules())

    async def get(self, name: str) -> Schedule:
        """One schedule. Raises UnknownSchedule."""
        found = await self._get_database().call(calls.schedules.schedules(name))
        if not found:
            raise UnknownSchedule(f"schedule {name!r} does not exist")
        return found[0]

    async def create(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Create a schedule. Raises InvalidSchedule, also when it exists."""
        encoded = encode_settings(settings)
        return await self._get_database().call(
            calls.schedules.set_schedule(name, encoded, actor=actor or self._get_database().actor, create=True)
        )

    async def set(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Change settings of a schedule, or create it; None takes one back. Raises InvalidSchedule."""
        encoded = encode_settings(settings)
        return await self._get_database().call(
            calls.schedules.set_schedule(name, encoded, actor=actor or self._get_database().actor, create=None)
        )

    async def pause(self, name: str, *, actor: str | None = None) -> Schedule:
        """Stop a schedule until it is resumed. Raises UnknownSchedule."""
        return await self._get_database().call(
            calls.schedules.set_schedule(
                name, {"paused": True}, actor=actor or self._get_database().actor, create=False
            )
        )

    async def resume(self, name: str, *, actor: str | None = None) -> Schedule:
        """Let a schedule go on from now: what came while it was paused is not made up for. Raises UnknownSchedule."""
        return await self._get_database().call(
            calls.schedules.set_schedule(
                name, {"paused": False}, actor=actor or self._get_database().actor, create=False
            )
        )

    async def run(self, name: str, *, actor: str | None = None) -> Job[Any]:
        """Enqueue its job now, whatever its ticks, windows and pauses. Raises UnknownSchedule."""
        made = await self._get_database().call(
            calls.schedules.run_schedule(name, actor=actor or self._get_database().actor)
        )
        return Job(self._get_database, made.job_id, created=made.created)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a schedule; one that is in some code comes back when its worker starts. Raises UnknownSchedule."""
        await self._get_database().call(
            calls.schedules.delete_schedule(name, actor=actor or self._get_database().actor)
        )

    async def next_runs(self, name: str, count: int = 5) -> Sequence[datetime]:
        """The next moments at which it fires, in its own zone. Raises UnknownSchedule."""
        return (await self.get(name)).next_runs(count)

    async def ticks(self, name: str, limit: int = 50) -> Sequence[Tick]:
        """What became of its ticks, newest first."""
        return await self._get_database().call(calls.schedules.list_ticks(name, limit))
