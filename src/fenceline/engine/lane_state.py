"""What the claim policy remembers of a lane."""

from dataclasses import dataclass, field
from math import inf

from fenceline.database.calls.lanes import LaneForWorker
from fenceline.model.outcome import Mode
from fenceline.runtime.alarms import FalseAlarms

#: After going idle a lane is looked at again soon: the wake-up of a job that was just committed may have been missed.
FIRST_POLLS_SECONDS = (0.02, 0.1, 0.5)


@dataclass(slots=True)
class LaneState:
    name: str
    modes: set[Mode]  # how the kinds seen in it are run
    in_use: bool = False  # jobs for this worker are to be expected there
    poll_seconds: float = 5.0
    enabled: bool = True
    limited: bool = False
    rated: bool | None = None  # None: not known since the settings were read
    asked: int = 0  # places promised to a claim that waits for its turn
    wanted: bool = False
    due_at: float = 0.0  # infinite: when a poll finds jobs
    empty_polls: int = 0
    was_woken: bool = False  # since it was last looked at
    waits_since: float = -inf
    looked_at: float = -inf
    busy_until: float = -inf  # somebody else holds it
    alarms: FalseAlarms = field(default_factory=FalseAlarms)
    shut: frozenset[Mode] = frozenset()  # modes without room when it was last found empty
    mean_seconds: float = 1.0  # of its jobs' run times; a cautious start
    floors: dict[int, int] = field(default_factory=dict)

    def update(self, lane: LaneForWorker) -> None:
        """What the database says of it now."""
        if lane.enabled and not self.enabled:
            self.wake()
        self.poll_seconds = lane.poll_interval_ms / 1000
        self.enabled = lane.enabled
        self.limited = lane.limited
        self.rated = self.rated or None  # it may have a rate now; whether it still has one, claims find out
        self.wanted = lane.wanted
        self.in_use = self.in_use or lane.expected

    def found_nothing(self, now: float) -> None:
        self.looked_at = now
        pauses = FIRST_POLLS_SECONDS
        self.due_at = now + pauses[self.empty_polls] if self.empty_polls < len(pauses) else inf
        self.empty_polls += 1

    def wake(self) -> None:
        # Waking is free for all who may connect: after many in vain it does not begin the soon polls anew.
        pause = self.alarms.pause_seconds
        self.was_woken = True
        if pause > 0:
            self.due_at = min(self.due_at, self.looked_at + pause)
        else:
            self.due_at = 0.0
            self.empty_polls = 0
