"""What the claim policy remembers of a lane.

Suspects, jobs that shared a process with a crash, are claimed apart from the others. Each runs in a process of its own
while everything else flows. A worker inside a program that cannot be imported elsewhere has no such processes: there a
suspect runs when nothing else does, or once it has waited so long that no other worker can be expected to take it. No
lane ever waits for a suspect.
"""

import time
from dataclasses import dataclass, field
from math import inf

from fenceline.database.calls.lanes import LaneForWorker
from fenceline.engine.places import Places
from fenceline.model.outcome import Mode
from fenceline.runtime.alarms import FalseAlarms

#: A lane that goes idle is looked at again soon: the notification of a job that was just committed may be missed.
FIRST_POLLS_SECONDS = (0.02, 0.1, 0.5)
#: A suspect without a process of its own waits this long for a worker that has one, or for this one to be idle.
PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class LaneState:
    name: str
    modes: set[Mode]  # how the kinds seen in it are run
    in_use: bool = False  # jobs for this worker can be expected there
    poll_seconds: float = 5.0
    enabled: bool = True
    limited: bool = False
    rated: bool | None = None  # has a rate limit; None: unknown since the settings were read
    asked: int = 0  # places reserved for a claim that waits for its turn
    wanted: bool = False  # an idle worker wants its jobs
    due_at: float = 0.0  # infinite: not until a poll finds jobs
    empty_polls: int = 0
    was_woken: bool = False  # since it was last looked at
    waits_since: float = -inf
    looked_at: float = -inf
    busy_until: float = -inf  # another transaction held it
    alarms: FalseAlarms = field(default_factory=FalseAlarms)
    shut: frozenset[Mode] = frozenset()  # modes that had no room when it was last found empty
    mean_seconds: float = 1.0  # of its jobs' run times; a cautious start
    floors: dict[int, int] = field(default_factory=dict)
    suspects_since: float | None = None  # None: there were none when it was last looked at
    asks_for_suspects: bool = False  # until a claim brings fewer than there was room for

    def update(self, lane: LaneForWorker) -> None:
        """Take over what the database says now."""
        if lane.enabled and not self.enabled:
            self.wake()
        self.poll_seconds = lane.poll_interval_ms / 1000
        self.enabled = lane.enabled
        self.limited = lane.limited
        self.rated = self.rated or None  # claims find out whether it has, or still has, a rate limit
        self.wanted = lane.wanted
        self.in_use = self.in_use or lane.expected
        self.asks_for_suspects = lane.suspects
        self.suspects_since = (self.suspects_since or time.monotonic()) if lane.suspects else None

    def suspect_room(self, places: Places, most: int) -> int:
        """How many suspects to ask for; at most `most` of each lane run at a time."""
        if places.has_isolation:
            return most - places.count_alone(self.name)
        if places.count_alone() > 0:
            return 0
        waited = 0.0 if self.suspects_since is None else time.monotonic() - self.suspects_since
        return 1 if places.idle or waited > PATIENCE_SECONDS else 0

    def found_nothing(self, now: float) -> None:
        self.looked_at = now
        pauses = FIRST_POLLS_SECONDS
        self.due_at = now + pauses[self.empty_polls] if self.empty_polls < len(pauses) else inf
        self.empty_polls += 1

    def wake(self) -> None:
        # Anybody who may connect can send wake-ups: after many in vain they no longer restart the quick polls.
        pause = self.alarms.pause_seconds
        self.was_woken = True
        if pause > 0:
            self.due_at = min(self.due_at, self.looked_at + pause)
        else:
            self.due_at = 0.0
            self.empty_polls = 0
