"""The blocking twin of stats_verbs.py.

Generated from stats_verbs.py by scripts/generate_sync.py: change that file, not this one.
"""

import json
from collections.abc import Mapping, Sequence

from fenceline.client.sync_caller import SyncCallerOf
from fenceline.database import stats_calls
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, SlowJob, Stats, Throughput


class SyncStatistics:
    """Backlog, active work, error rates, throughput, slow jobs: of one tenant, or of all."""

    __slots__ = ("_caller_of",)

    def __init__(self, caller_of: SyncCallerOf) -> None:
        self._caller_of = caller_of

    def backlog(self, tenant: str | None = None) -> Stats[Backlog]:
        """What waits, by kind and lane."""
        text = self._caller_of().call(stats_calls.backlog(tenant))
        return Stats.from_json(Backlog, json.loads(text))

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
        """Jobs that workers hold, those held longest first, with phase and progress."""
        text = self._caller_of().call(
            stats_calls.active(
                tenant,
                None,
                kinds=None if kinds is None else [*kinds],
                lanes=None if lanes is None else [*lanes],
                labels=labels,
                phase=phase,
                limit=limit,
            )
        )
        return Stats.from_json(ActiveJob, json.loads(text))

    def errors(self, tenant: str | None = None, *, seconds: float = 3600) -> Stats[ErrorRate]:
        """Of the jobs that ended within the last seconds, by kind: how many failed or had errors."""
        text = self._caller_of().call(stats_calls.errors(tenant, None, seconds=seconds))
        return Stats.from_json(ErrorRate, json.loads(text))

    def throughput(
        self, tenant: str | None = None, *, seconds: float = 3600, bucket_seconds: float = 60
    ) -> Stats[Throughput]:
        """Jobs that ended within the last seconds, per tenant and span of time."""
        text = self._caller_of().call(
            stats_calls.throughput(tenant, None, seconds=seconds, bucket_seconds=bucket_seconds)
        )
        return Stats.from_json(Throughput, json.loads(text))

    def slow(
        self,
        tenant: str | None = None,
        *,
        seconds: float = 3600,
        kinds: Sequence[str] | None = None,
        limit: int = 20,
    ) -> Stats[SlowJob]:
        """The jobs that take longest now, or took within the last seconds."""
        text = self._caller_of().call(
            stats_calls.slow(tenant, None, seconds=seconds, kinds=None if kinds is None else [*kinds], limit=limit)
        )
        return Stats.from_json(SlowJob, json.loads(text))
