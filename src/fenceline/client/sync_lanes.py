"""The blocking twin of lanes.py.

Generated from lanes.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Mapping
from typing import Any

from fenceline.client.sync_verbs import Verbs
from fenceline.database import calls
from fenceline.errors import NotFound
from fenceline.model.job import Lane


class SyncLanes(Verbs):
    """The lanes and their settings; a change takes effect with the next claim."""

    __slots__ = ()

    def list(self) -> list[Lane]:
        """All lanes, with their measurements."""
        return self._call(calls.lanes.describe_lanes())

    def get(self, name: str) -> Lane:
        """One lane. Raises NotFound."""
        found = self._call(calls.lanes.describe_lanes(name))
        if not found:
            raise NotFound(f"lane {name!r} does not exist")
        return found[0]

    def create(self, name: str, *, actor: str | None = None, **settings: Any) -> Lane:
        """Create a lane. Raises InvalidLane if it exists or a setting is invalid."""
        return self._set(name, settings, actor, create=True)

    def set(self, name: str, *, actor: str | None = None, **settings: Any) -> Lane:
        """Change settings of a lane, or create it with them; None clears one. Raises InvalidLane."""
        return self._set(name, settings, actor, create=None)

    def drain(self, name: str, *, actor: str | None = None) -> Lane:
        """Stop claims of a lane; enqueues are still accepted. Raises UnknownLane."""
        return self._set(name, {"enabled": False}, actor, create=False)

    def resume(self, name: str, *, actor: str | None = None) -> Lane:
        """Let workers claim from a lane again. Raises UnknownLane."""
        return self._set(name, {"enabled": True}, actor, create=False)

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a lane without unfinished jobs. Raises UnknownLane, LaneInUse."""
        self._call(calls.lanes.delete_lane(name, actor=self._actor(actor)))

    def _set(self, name: str, settings: Mapping[str, Any], actor: str | None, *, create: bool | None) -> Lane:
        self._call(calls.lanes.set_lane(name, settings, actor=self._actor(actor), create=create))
        return self.get(name)
