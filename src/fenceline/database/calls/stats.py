"""Figures about the jobs of a tenant, or of all; with `created_by`, only about those that this actor enqueued."""

from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.database.call import As, Call, function, jsonb, value_of
from fenceline.database.decoding import json_value, record
from fenceline.model.stats import ActiveJob, Backlog, ErrorRate, Failure, SlowJob, Starts, Stats, Throughput


def stats_waiting(tenant: str | None, created_by: str | None = None) -> Call[Stats[Backlog]]:
    return value_of(function("stats_waiting", locals()), record(Stats[Backlog]), repeatable=True)


def stats_active(
    tenant: str | None,
    created_by: str | None = None,
    *,
    kinds: Sequence[str] | None,
    lanes: Sequence[str] | None,
    labels: Mapping[str, str] | None,
    phase: str | None,
    limit: int,
) -> Call[Stats[ActiveJob]]:
    called = function("stats_active", locals(), labels=jsonb(labels or None))
    return value_of(called, record(Stats[ActiveJob]), repeatable=True)


def stats_errors(tenant: str | None, created_by: str | None = None, *, seconds: float) -> Call[Stats[ErrorRate]]:
    return value_of(function("stats_errors", locals()), record(Stats[ErrorRate]), repeatable=True)


def stats_throughput(
    tenant: str | None, created_by: str | None = None, *, seconds: float, bucket_seconds: float
) -> Call[Stats[Throughput]]:
    return value_of(function("stats_throughput", locals()), record(Stats[Throughput]), repeatable=True)


def stats_slow(
    tenant: str | None, created_by: str | None = None, *, seconds: float, kinds: Sequence[str] | None, limit: int
) -> Call[Stats[SlowJob]]:
    return value_of(function("stats_slow", locals()), record(Stats[SlowJob]), repeatable=True)


def stats_starts(
    tenant: str | None, created_by: str | None = None, *, seconds: float, bucket_seconds: float
) -> Call[Stats[Starts]]:
    return value_of(function("stats_starts", locals()), record(Stats[Starts]), repeatable=True)


def stats_failures(
    tenant: str | None, created_by: str | None = None, *, seconds: float, limit: int
) -> Call[Stats[Failure]]:
    return value_of(function("stats_failures", locals()), record(Stats[Failure]), repeatable=True)


def measure_fleet(since: str | None, bounds: Sequence[float]) -> Call[dict[str, Any]]:
    """Figures for metrics, of what has ended since the moment `until` of the answer before."""
    called = function("measure_fleet", locals(), since=As("timestamptz", As("text", since)))
    return value_of(called, json_value, repeatable=True)
