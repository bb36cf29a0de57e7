"""When a worker claims suspects: jobs that shared a process with a crash, each of which may have caused it.

They run in processes of their own while everything else flows, so many at a time of each lane, so that
one lane's suspects do not wait for another's. A worker inside a program that cannot be imported elsewhere has no such
processes. There a suspect runs when nothing else does, or once it has waited for so long that no other worker can be
expected to take it: one at a time, and others start beside it. No lane ever waits for a suspect.
"""

import logging
import time

from fenceline.engine.places import Places
from fenceline.model.worker_settings import WorkerSettings

log = logging.getLogger("fenceline.worker")

#: Without a process of its own, a suspect waits so long for a worker that has one, or for this one to be idle.
PATIENCE_SECONDS = 30.0


class Suspects:
    def __init__(self, places: Places, settings: WorkerSettings) -> None:
        self._places = places
        self._most_per_lane = settings.isolated
        self._since: dict[str, float] = {}
        self._due: set[str] = set()

    def see(self, lane: str, *, waiting: bool) -> None:
        """What the database says of a lane."""
        if waiting:
            self._since.setdefault(lane, time.monotonic())
            self._due.add(lane)
        else:
            self.forget(lane)

    def forget(self, lane: str) -> None:
        self._since.pop(lane, None)
        self._due.discard(lane)

    def wait_in(self, lane: str) -> bool:
        """Whether there were any when the lane was last looked at."""
        return lane in self._since

    def are_due(self, lane: str) -> bool:
        """Whether to ask for them now."""
        return lane in self._due and self.room(lane) > 0

    def asked(self, lane: str, limit: int, claimed: int) -> None:
        """Fewer than there was room for: that was all for now, or the lane has no slot left."""
        if claimed < limit:
            self._due.discard(lane)
        if claimed and not self._places.has_isolation:
            log.warning(
                "lane %s: a suspect of a crash runs in this process, because the app cannot be started in another: "
                "say where it is with run_worker(import_name=…)", lane,
            )  # fmt: skip

    def room(self, lane: str) -> int:
        """How many to ask for."""
        if self._places.has_isolation:
            return self._most_per_lane - self._places.count_alone(lane)
        if self._places.count_alone() > 0:
            return 0
        has_waited = time.monotonic() - self._since[lane] > PATIENCE_SECONDS
        return 1 if self._places.idle or has_waited else 0
