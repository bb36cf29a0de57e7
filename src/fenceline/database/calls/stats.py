"""Figures about the jobs of a tenant, or of all; with `created_by`, only about those that this actor enqueued."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.database.call import As, Call, function, value_of
from fenceline.database.decoding import json_value, record
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, Failure, SlowJob, Starts, Stats, Throughput


def stats_backlog(tenant: str | None) -> Call[Stats[Backlog]]:
    return value_of(function("stats_backlog", tenant=tenant), record(Stats[Backlog]), repeatable=True)


def stats_active(
    tenant: str | None,
    created_by: str | None = None,
    *,
    kinds: list[str] | None,
    lanes: list[str] | None,
    labels: Mapping[str, str] | None,
    phase: str | None,
    limit: int,
) -> Call[Stats[ActiveJob]]:
    called = function(
        "stats_active",
        tenant=tenant,
        created_by=created_by,
        kinds=kinds,
        lanes=lanes,
        labels=As("jsonb", json.dumps(dict(labels)) if labels else None),
        phase=phase,
        limit=limit,
    )
    return value_of(called, record(Stats[ActiveJob]), repeatable=True)


def stats_errors(tenant: str | None, created_by: str | None = None, *, seconds: float) -> Call[Stats[ErrorRate]]:
    called = function("stats_errors", tenant=tenant, created_by=created_by, seconds=float(seconds))
    return value_of(called, record(Stats[ErrorRate]), repeatable=True)


def stats_throughput(
    tenant: str | None, created_by: str | None = None, *, seconds: float, bucket_seconds: float
) -> Call[Stats[Throughput]]:
    called = function(
        "stats_throughput",
        tenant=tenant,
        created_by=created_by,
        seconds=float(seconds),
        bucket_seconds=float(bucket_seconds),
    )
    return value_of(called, record(Stats[Throughput]), repeatable=True)


def stats_slow(
    tenant: str | None, created_by: str | None = None, *, seconds: float, kinds: list[str] | None, limit: int
) -> Call[Stats[SlowJob]]:
    called = function(
        "stats_slow", tenant=tenant, created_by=created_by, seconds=float(seconds), kinds=kinds, limit=limit
    )
    return value_of(called, record(Stats[SlowJob]), repeatable=True)


def stats_starts(
    tenant: str | None, created_by: str | None = None, *, seconds: float, bucket_seconds: float
) -> Call[Stats[Starts]]:
    called = function(
        "stats_starts",
        tenant=tenant,
        created_by=created_by,
        seconds=float(seconds),
        bucket_seconds=float(bucket_seconds),
    )
    return value_of(called, record(Stats[Starts]), repeatable=True)


def stats_failures(
    tenant: str | None, created_by: str | None = None, *, seconds: float, limit: int
) -> Call[Stats[Failure]]:
    called = function("stats_failures", tenant=tenant, created_by=created_by, seconds=float(seconds), limit=limit)
    return value_of(called, record(Stats[Failure]), repeatable=True)


def measure_fleet(since: str | None, bounds: Sequence[float]) -> Call[dict[str, Any]]:
    """Figures for metrics; what ended since the moment `until` of the answer before."""
    called = function("measure_fleet", since=As("timestamptz", As("text", since)), bounds=list(bounds))
    return value_of(called, json_value, repeatable=True)
