"""`/metrics` for Prometheus: the fleet by lane, and the server's own requests.

It names no tenants or jobs, and kinds only if it requires a token (`--private-metrics`).
"""

import asyncio
import time

from fastapi import Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from fenceline.database import calls
from fenceline.runtime.database import Database
from fenceline.server.fleet_metrics import WAIT_BOUNDS, FleetMetrics
from fenceline.server.routing import PUBLIC, ApiRequest, operation, router

routes = router("health")

#: How often the fleet is measured at most.
REMEMBER_SECONDS = 2.0
#: How often the text, of thousands of lines, is generated at most.
WRITE_SECONDS = 0.25
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class ServerMetrics:
    """Counts requests, and measures the fleet on demand."""

    def __init__(self, database: Database, *, shows_kinds: bool = False) -> None:
        self._database = database
        self._fleet = FleetMetrics(shows_kinds=shows_kinds)
        self._registry = CollectorRegistry()
        self._registry.register(self._fleet)
        self._requests = Counter(
            "fenceline_http_requests",
            "Answers of this server to API calls and pages.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "fenceline_http_request_seconds",
            "How long this server took to answer, per route.",
            ["route"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._measured: float | None = None
        self._written: tuple[float, bytes] | None = None
        self._turn = asyncio.Lock()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    async def render(self) -> bytes:
        async with self._turn:
            if self._measured is None or time.monotonic() - self._measured > REMEMBER_SECONDS:
                lanes = await self._database.call(calls.lanes.describe_lanes())
                self._fleet.update(
                    lanes, await self._database.call(calls.stats.measure_fleet(self._fleet.until, WAIT_BOUNDS))
                )
                self._measured = time.monotonic()
        if self._written is None or time.monotonic() - self._written[0] > WRITE_SECONDS:
            self._written = (time.monotonic(), generate_latest(self._registry))
        return self._written[1]


@routes.get(
    "/metrics",
    **operation(
        PUBLIC,
        "unauthenticated",
        "forbidden",
        "limited",
        "unavailable",
        answers={200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    ),
)
async def metrics(request: ApiRequest) -> Response:
    """Metrics of the fleet and of this server. With `--private-metrics` it needs `workers:view`."""
    if request.server.settings.private_metrics:
        await request.admit("workers:view")
    return Response(await request.server.metrics.render(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
