"""What a worker has done, counted for metrics: kept in the child, sent to the supervisor as what came since."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fenceline.context.attempt import Ending

#: Upper bounds of run times in seconds; what is longer has a place of its own behind them.
BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3600.0)


@dataclass(slots=True)
class RunTimes:
    """A histogram of one kind."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def merge(self, counts: Iterable[int], total: float) -> None:
        self.counts = [mine + other for mine, other in zip(self.counts, counts, strict=True)]
        self.total += total


class Tally:
    def __init__(self) -> None:
        self.ended: dict[tuple[str, str], int] = {}
        self.run_times: dict[str, RunTimes] = {}

    def note(self, ending: Ending) -> None:
        kind = ending.attempt.kind
        self.ended[kind, ending.outcome] = self.ended.get((kind, ending.outcome), 0) + 1
        if ending.ran_seconds is not None:
            if kind not in self.run_times:
                self.run_times[kind] = RunTimes()
            self.run_times[kind].add(ending.ran_seconds)

    def take(self) -> dict[str, Any]:
        """What was counted since the last time, as JSON."""
        taken = {
            "ended": [[kind, outcome, count] for (kind, outcome), count in self.ended.items()],
            "run_times": [[kind, times.counts, times.total] for kind, times in self.run_times.items()],
        }
        self.ended, self.run_times = {}, {}
        return taken

    def merge(self, taken: dict[str, Any]) -> None:
        for kind, outcome, count in taken["ended"]:
            self.ended[kind, outcome] = self.ended.get((kind, outcome), 0) + count
        for kind, counts, total in taken["run_times"]:
            self.run_times.setdefault(kind, RunTimes()).merge(counts, total)
