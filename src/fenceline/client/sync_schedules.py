"""The blocking twin of schedules.py.

Generated from schedules.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from fenceline.client.schedule_decorator import ScheduleSettings, encode_settings
from fenceline.client.sync_job import SyncJob
from fenceline.client.sync_verbs import Verbs
from fenceline.database import calls
from fenceline.errors import UnknownSchedule
from fenceline.model.schedule import Schedule, Tick


class SyncSchedules(Verbs):
    """The schedules in the database. Settings made here override those in the code, and last."""

    __slots__ = ()

    def list(self) -> list[Schedule]:
        """All schedules, by name."""
        return self._call(calls.schedules.schedules())

    def get(self, name: str) -> Schedule:
        """One schedule. Raises UnknownSchedule."""
        found = self._call(calls.schedules.schedules(name))
        if not found:
            raise UnknownSchedule(f"schedule {name!r} does not exist")
        return found[0]

    def create(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Create a schedule. Raises InvalidSchedule, also when it exists."""
        return self._set(name, settings, actor, create=True)

    def set(self, name: str, *, actor: str | None = None, **settings: Unpack[ScheduleSettings]) -> Schedule:
        """Change settings of a schedule, or create it; None undoes one. Raises InvalidSchedule."""
        return self._set(name, settings, actor, create=None)

    def pause(self, name: str, *, actor: str | None = None) -> Schedule:
        """Stop a schedule until it is resumed. Raises UnknownSchedule."""
        return self._set(name, {"paused": True}, actor, create=False)

    def resume(self, name: str, *, actor: str | None = None) -> Schedule:
        """Let a schedule go on from now; ticks during the pause are skipped. Raises UnknownSchedule."""
        return self._set(name, {"paused": False}, actor, create=False)

    def run(self, name: str, *, actor: str | None = None) -> SyncJob[Any]:
        """Enqueue its job now, regardless of ticks, windows and pauses. Raises UnknownSchedule."""
        made = self._call(calls.schedules.run_schedule(name, actor=self._actor(actor)))
        return SyncJob(self._get_database, made.job_id, created=made.created)

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a schedule; one declared in code comes back when its worker starts. Raises UnknownSchedule."""
        self._call(calls.schedules.delete_schedule(name, actor=self._actor(actor)))

    def next_runs(self, name: str, count: int = 5) -> Sequence[datetime]:
        """The next times at which it fires, in its own time zone. Raises UnknownSchedule."""
        return (self.get(name)).next_runs(count)

    def ticks(self, name: str, limit: int = 50) -> Sequence[Tick]:
        """What became of its ticks, newest first."""
        return self._call(calls.schedules.list_ticks(name, limit))

    def _set(self, name: str, settings: ScheduleSettings, actor: str | None, *, create: bool | None) -> Schedule:
        encoded = encode_settings(settings)
        return self._call(calls.schedules.set_schedule(name, encoded, actor=self._actor(actor), create=create))
