"""The blocking twin of schedules.py.

Generated from schedules.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from fenceline.client.schedule_decorator import ScheduleSettings, encode_settings
from fenceline.client.sync_database import GetSyncDatabase
from fenceline.client.sync_job import SyncJob
from fenceline.database import calls
from fenceline.errors import UnknownSchedule
from fenceline.model.schedule import Schedule, Tick


class SyncSchedules:
    """The schedules in the database, and what operators say about them: stronger than the code, and lasting."""

    __slots__ = ("_get_database",)

    def __init__(self, get_database: GetSyncDatabase) -> None:
        self._get_database = get_database

    def list(self) -> list[Schedule]:
        """All schedules, by name."""
        return self._get_database().call(calls.schedules.schedules())

    def get(self, name: str) -> Schedule:
        """One schedule. Raises UnknownSchedule."""
        found = self._get_database().call(calls.schedules.schedules(name))
        if not found:
            raise UnknownSchedule(f"schedule {name!r} does not exist")
        return found[0]

    def create(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Create a schedule. Raises InvalidSchedule, also when it exists."""
        encoded = encode_settings(settings)
        return self._get_database().call(
            calls.schedules.set_schedule(name, encoded, actor=actor or self._get_database().actor, create=True)
        )

    def set(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Change settings of a schedule, or create it; None takes one back. Raises InvalidSchedule."""
        encoded = encode_settings(settings)
        return self._get_database().call(
            calls.schedules.set_schedule(name, encoded, actor=actor or self._get_database().actor, create=None)
        )

    def pause(self, name: str, *, actor: str | None = None) -> Schedule:
        """Stop a schedule until it is resumed. Raises UnknownSchedule."""
        return self._get_database().call(
            calls.schedules.set_schedule(
                name, {"paused": True}, actor=actor or self._get_database().actor, create=False
            )
        )

    def resume(self, name: str, *, actor: str | None = None) -> Schedule:
        """Let a schedule go on from now: what came while it was paused is not made up for. Raises UnknownSchedule."""
        return self._get_database().call(
            calls.schedules.set_schedule(
                name, {"paused": False}, actor=actor or self._get_database().actor, create=False
            )
        )

    def run(self, name: str, *, actor: str | None = None) -> SyncJob[Any]:
        """Enqueue its job now, whatever its ticks, windows and pauses. Raises UnknownSchedule."""
        made = self._get_database().call(calls.schedules.run_schedule(name, actor=actor or self._get_database().actor))
        return SyncJob(self._get_database, made.job_id, created=made.created)

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a schedule; one that is in some code comes back when its worker starts. Raises UnknownSchedule."""
        self._get_database().call(calls.schedules.delete_schedule(name, actor=actor or self._get_database().actor))

    def next_runs(self, name: str, count: int = 5) -> Sequence[datetime]:
        """The next moments at which it fires, in its own zone. Raises UnknownSchedule."""
        return (self.get(name)).next_runs(count)

    def ticks(self, name: str, limit: int = 50) -> Sequence[Tick]:
        """What became of its ticks, newest first."""
        return self._get_database().call(calls.schedules.list_ticks(name, limit))
