"""Statistics of a queue, for operators."""

from collections.abc import Mapping, Sequence

from fenceline.client.verbs import Verbs
from fenceline.database import calls
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, SlowJob, Stats, Throughput


class Statistics(Verbs):
    """Backlog, active work, error rates, throughput, slow jobs: of one tenant, or of all."""

    __slots__ = ()

    async def backlog(self, tenant: str | None = None) -> Stats[Backlog]:
        """Waiting jobs, by kind and lane."""
        return await self._call(calls.stats.stats_waiting(tenant))

    async def active(
        self,
        tenant: str | None = None,
        *,
        kinds: Sequence[str] | None = None,
        lanes: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        phase: str | None = None,
        limit: int = 100,
    ) -> Stats[ActiveJob]:
        """Jobs that workers hold, the longest held first, at most `limit`, with phase and progress.

        Filtered by `kinds`, `lanes`, `labels` and `phase`.
        """
        return await self._call(
            calls.stats.stats_active(tenant, kinds=kinds, lanes=lanes, labels=labels, phase=phase, limit=limit)
        )

    async def errors(self, tenant: str | None = None, *, seconds: float = 3600) -> Stats[ErrorRate]:
        """How many jobs of each kind ended within the last `seconds`, and how many of them failed or had errors."""
        return await self._call(calls.stats.stats_errors(tenant, seconds=seconds))

    async def throughput(
        self, tenant: str | None = None, *, seconds: float = 3600, bucket_seconds: float = 60
    ) -> Stats[Throughput]:
        """Jobs that ended within the last `seconds`, per tenant and `bucket_seconds`."""
        return await self._call(calls.stats.stats_throughput(tenant, seconds=seconds, bucket_seconds=bucket_seconds))

    async def slow(
        self,
        tenant: str | None = None,
        *,
        seconds: float = 3600,
        kinds: Sequence[str] | None = None,
        limit: int = 20,
    ) -> Stats[SlowJob]:
        """The slowest jobs of these `kinds` that are running or ended within the last `seconds`, at most `limit`."""
        return await self._call(calls.stats.stats_slow(tenant, seconds=seconds, kinds=kinds, limit=limit))
