"""Metrics of the fleet: gauges as last measured, and counters of what has ended since.

Every server counts all ends from the history: take the `max` over servers, not the sum. Counters start at 0 with the
server.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from fenceline.model.job import Lane
from fenceline.model.status import FINAL

#: Upper bounds, in seconds, of the histogram of waits for a start.
WAIT_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)
LANE_GAUGES = {
    "depth": "Jobs of the lane that wait for a worker or a slot.",
    "in_use": "Slots of the lane that running jobs occupy.",
    "slots": "Most jobs of the lane that may run at once; absent if unlimited.",
    "slots_free": "Slots that are not in use; absent if unlimited.",
    "oldest_age_seconds": "How long the first job in the queue has been waiting, in seconds.",
    "enabled": "1 if the lane starts jobs, 0 if it is drained.",
    "unsent": "Queued jobs whose message has not been sent to the backend; absent without one.",
}
ATTEMPTS = {
    "lost": "Attempts that ended because their worker's lease expired.",
    "crashed": "Attempts that ended because their process died.",
    "quarantined": "Jobs that failed because they crashed their process three times.",
}


class FleetMetrics(Collector):
    """`shows_kinds`: whether names of kinds may be shown; else `kind` is empty."""

    def __init__(self, *, shows_kinds: bool = False) -> None:
        self._shows_kinds = shows_kinds
        self._lanes: list[Lane] = []
        self._now: Mapping[str, Any] = {}
        self._ended: Counter[tuple[str, str]] = Counter()
        self._attempts: Counter[str] = Counter()
        self._waits: dict[tuple[str, str], tuple[list[int], float]] = {}

    @property
    def until(self) -> str | None:
        """The moment up to which ends have been counted."""
        return self._now.get("until")

    def update(self, lanes: list[Lane], measured: Mapping[str, Any]) -> None:
        """Take in the answer of `measure_fleet`, which begins at `until`."""
        self._lanes, self._now = lanes, measured
        for lane in lanes:
            for status in FINAL:
                self._ended[lane.name, str(status)] += 0
        for name, status, jobs in measured["ended"]:
            self._ended[name, status] += jobs
        self._attempts.update(measured["attempts"])
        for name, kind, seconds, counts in measured["waits"]:
            where = (name, kind if self._shows_kinds else "")
            before, total = self._waits.get(where, ([0] * (len(WAIT_BOUNDS) + 1), 0.0))
            self._waits[where] = ([a + b for a, b in zip(before, counts, strict=True)], total + seconds)

    def collect(self) -> list[Metric]:
        return [*self._lane_gauges(), *self._fleet_gauges(), *self._counters(), self._histogram()]

    def _lane_gauges(self) -> list[Metric]:
        families: list[Metric] = []
        for name, text in LANE_GAUGES.items():
            family = GaugeMetricFamily(f"fenceline_lane_{name}", text, labels=["lane"])
            for lane in self._lanes:
                value = _free(lane) if name == "slots_free" else getattr(lane, name)
                if value is not None:
                    family.add_metric([lane.name], float(value))
            families.append(family)
        return families

    def _fleet_gauges(self) -> list[Metric]:
        text = "Workers and runners that are signed on; no servers, which deliver webhooks."
        workers = GaugeMetricFamily("fenceline_workers", text, labels=["status"])
        jobs = GaugeMetricFamily(
            "fenceline_jobs", "Jobs that wait for something else than a worker.", labels=["status"]
        )
        draining = GaugeMetricFamily("fenceline_draining", "1: new jobs from outside are refused.")
        if self._now:
            for status in ("live", "blocked", "lost"):
                workers.add_metric([status], self._now["workers"][status])
            for status in ("scheduled", "waiting", "awaiting_approval"):
                jobs.add_metric([status], self._now["jobs"][status])
            draining.add_metric([], float(self._now["draining"]))
        return [workers, jobs, draining]

    def _counters(self) -> list[Metric]:
        ended = CounterMetricFamily("fenceline_jobs_ended", "Jobs that ended.", labels=["lane", "status"])
        for labels, count in self._ended.items():
            ended.add_metric(labels, count)
        families: list[Metric] = [ended]
        for name, text in ATTEMPTS.items():
            thing = "jobs" if name == "quarantined" else "attempts"
            families.append(CounterMetricFamily(f"fenceline_{thing}_{name}", text, value=self._attempts[name]))
        return families

    def _histogram(self) -> Metric:
        text = "How long jobs waited for their first start, from the enqueue or run_at; counted when the attempt ends."
        waits = HistogramMetricFamily("fenceline_start_wait_seconds", text, labels=["lane", "kind"])
        for labels, (counts, total) in self._waits.items():
            below, buckets = 0, []
            for bound, count in zip((*map(str, WAIT_BOUNDS), "+Inf"), counts, strict=True):
                below += count
                buckets.append((bound, below))
            waits.add_metric(labels, buckets, total)
        return waits


def _free(lane: Lane) -> int | None:
    return None if lane.slots is None else max(0, lane.slots - lane.in_use)
