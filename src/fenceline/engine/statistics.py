"""Counts what a worker does, for logs and metrics; a supervisor is sent the differences and adds them up."""

import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fenceline.context.attempt import Attempt, Ending
from fenceline.model.outcome import Outcome

log = logging.getLogger("fenceline.worker")

#: Upper bounds of run times in seconds; longer ones are counted in one more bucket.
BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3600.0)


@dataclass(slots=True)
class RunTimes:
    """A histogram of the run times of one kind."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def merge(self, counts: Iterable[int], total: float) -> None:
        self.counts = [mine + other for mine, other in zip(self.counts, counts, strict=True)]
        self.total += total


class RunStatistics:
    def __init__(self, *, by_kind: bool = True) -> None:
        """`by_kind`: count and time each kind, as metrics need."""
        self._by_kind = by_kind
        self.claimed = 0
        self.stale = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.run_times: defaultdict[str, RunTimes] = defaultdict(RunTimes)
        self._taken = (0, 0)  # of claimed and stale

    @property
    def all_succeeded(self) -> bool:
        """Whether something has ended and all of it succeeded. An attempt that was taken away counts against it."""
        return bool(self.outcomes) and all(outcome.is_success for outcome in self.outcomes) and self.stale == 0

    def note_ended(self, endings: Sequence[Ending]) -> None:
        """Count endings that were accepted; one that came too late is no success."""
        for ending in endings:
            self.outcomes[ending.outcome] += 1
            if self._by_kind:
                self._note_kind(ending)

    def note_stale(self, attempt: Attempt) -> None:
        self.stale += 1
        log.warning("stale_attempt: the ending of attempt %s was refused", attempt.attempt_id)

    def _note_kind(self, ending: Ending) -> None:
        self.ended[ending.attempt.kind, ending.outcome] += 1
        if ending.ran_seconds is not None:
            self.run_times[ending.attempt.kind].add(ending.ran_seconds)

    def take(self) -> dict[str, Any]:
        """What was counted since the last call, as JSON."""
        taken = {
            "claimed": self.claimed - self._taken[0],
            "stale": self.stale - self._taken[1],
            "ended": [[kind, outcome, count] for (kind, outcome), count in self.ended.items()],
            "run_times": [[kind, times.counts, times.total] for kind, times in self.run_times.items()],
        }
        self._taken = (self.claimed, self.stale)
        self.ended.clear()
        self.run_times.clear()
        return taken

    def merge(self, taken: dict[str, Any]) -> None:
        self.claimed += taken["claimed"]
        self.stale += taken["stale"]
        for kind, outcome, count in taken["ended"]:
            self.ended[kind, outcome] += count
        for kind, counts, total in taken["run_times"]:
            self.run_times[kind].merge(counts, total)
