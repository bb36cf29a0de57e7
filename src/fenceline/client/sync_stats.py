"""The blocking twin of stats.py.

Generated from stats.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Mapping, Sequence

from fenceline.client.sync_verbs import Verbs
from fenceline.database import calls
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, SlowJob, Stats, Throughput


class SyncStatistics(Verbs):
    """Backlog, active work, error rates, throughput, slow jobs: of one tenant, or of all."""

    __slots__ = ()

    def backlog(self, tenant: str | None = None) -> Stats[Backlog]:
        """Waiting jobs, by kind and lane."""
        return self._call(calls.stats.stats_waiting(tenant))

    def active(
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
        return self._call(
            calls.stats.stats_active(tenant, kinds=kinds, lanes=lanes, labels=labels, phase=phase, limit=limit)
        )

    def errors(self, tenant: str | None = None, *, seconds: float = 3600) -> Stats[ErrorRate]:
        """How many jobs of each kind ended within the last `seconds`, and how many of them failed or had errors."""
        return self._call(calls.stats.stats_errors(tenant, seconds=seconds))

    def throughput(
        self, tenant: str | None = None, *, seconds: float = 3600, bucket_seconds: float = 60
    ) -> Stats[Throughput]:
        """Jobs that ended within the last `seconds`, per tenant and `bucket_seconds`."""
        return self._call(calls.stats.stats_throughput(tenant, seconds=seconds, bucket_seconds=bucket_seconds))

    def slow(
        self,
        tenant: str | None = None,
        *,
        seconds: float = 3600,
        kinds: Sequence[str] | None = None,
        limit: int = 20,
    ) -> Stats[SlowJob]:
        """The slowest jobs of these `kinds` that are running or ended within the last `seconds`, at most `limit`."""
        return self._call(calls.stats.stats_slow(tenant, seconds=seconds, kinds=kinds, limit=limit))
