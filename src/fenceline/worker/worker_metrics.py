"""Prometheus metrics of a supervisor and all its children, served over HTTP. Needs the extra `metrics`.

The children count (`RunStatistics`) and send the differences about once a second; here they are added up. Counters
survive the death of a child, except for what happened in its last second.
"""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fenceline.engine.statistics import BOUNDS, RunStatistics
from fenceline.errors import FencelineError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

COUNTERS = {
    "claimed": "Jobs that this worker has claimed, retries included.",
    "stale": "Attempts that were gone when their worker wanted to write: reclaimed, cancelled or killed.",
}
GAUGES = {
    "running": "Handlers that run at this moment.",
    "waiting": "Attempts that are claimed but have not started yet.",
    "lost_places": "Places in the worker taken up by handlers that keep running although their attempt is over.",
}


class MetricsMissing(FencelineError):
    """The extra `metrics` is not installed."""


class Metrics:
    """Adds up what children send, and is a collector for prometheus_client."""

    def __init__(self) -> None:
        self._statistics = RunStatistics()
        self._gauges: dict[int, dict[str, int]] = {}
        self._turn = threading.Lock()  # the server answers in threads of its own

    def update(self, pid: int, message: dict[str, Any]) -> None:
        """Add what a child sent."""
        with self._turn:
            self._statistics.merge(message)
            self._gauges[pid] = {name: message[name] for name in GAUGES}

    def forget(self, pid: int) -> None:
        """The child is gone, and so is what it had under way."""
        with self._turn:
            self._gauges.pop(pid, None)

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        with self._turn:
            for name, text in COUNTERS.items():
                yield CounterMetricFamily(f"fenceline_attempts_{name}", text, value=getattr(self._statistics, name))
            ended = CounterMetricFamily(
                "fenceline_attempts_ended", "Attempts that ended on this worker.", labels=["kind", "outcome"]
            )
            for (kind, outcome), count in self._statistics.ended.items():
                ended.add_metric([kind, outcome], count)
            yield ended
            run_times = HistogramMetricFamily(
                "fenceline_run_seconds", "How long handlers ran, in seconds.", labels=["kind"]
            )
            for kind, times in self._statistics.run_times.items():
                buckets, below = [], 0
                for bound, count in zip((*map(str, BOUNDS), "+Inf"), times.counts, strict=True):
                    below += count
                    buckets.append((bound, below))
                run_times.add_metric([kind], buckets, times.total)
            yield run_times
            for name, text in GAUGES.items():
                value = sum(gauges[name] for gauges in self._gauges.values())
                yield GaugeMetricFamily(f"fenceline_{name}", text, value=value)
            yield GaugeMetricFamily("fenceline_children", "Child processes at work.", value=len(self._gauges))

    def registry(self) -> "CollectorRegistry":
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        registry.register(self)
        return registry

    def serve(self, port: int, host: str = "127.0.0.1") -> int:
        """Answer GET /metrics; 0 takes any free port. Returns the port. Raises MetricsMissing."""
        try:
            from prometheus_client import start_http_server
        except ImportError as error:
            raise MetricsMissing(
                "metrics need the package prometheus-client: pip install 'fenceline[metrics]'"
            ) from error
        server, _thread = start_http_server(port, host, registry=self.registry())
        return int(server.server_port)
