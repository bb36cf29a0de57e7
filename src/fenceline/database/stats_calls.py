"""What operators ask of a queue, as `Call`s that answer with JSON text."""

import json
from collections.abc import Mapping, Sequence

from fenceline.database.calls import Call, Row


def _text(rows: Sequence[Row]) -> str:
    value = rows[0][0]
    return value if isinstance(value, str) else json.dumps(value)  # psycopg hands JSON over as objects


def backlog(tenant: str | None) -> Call[str]:
    return Call("select fenceline.stats_backlog($1)", (tenant,), _text, repeatable=True)


def active(
    tenant: str | None,
    created_by: str | None,
    *,
    kinds: list[str] | None,
    lanes: list[str] | None,
    labels: Mapping[str, str] | None,
    phase: str | None,
    limit: int,
) -> Call[str]:
    return Call(
        "select fenceline.stats_active($1, $2, $3, $4, cast($5 as jsonb), $6, $7)",
        (tenant, created_by, kinds, lanes, json.dumps(dict(labels)) if labels else None, phase, limit),
        _text,
        repeatable=True,
    )


def errors(tenant: str | None, created_by: str | None, *, seconds: float) -> Call[str]:
    return Call(
        "select fenceline.stats_errors($1, $2, $3)", (tenant, created_by, float(seconds)), _text, repeatable=True
    )


def throughput(tenant: str | None, created_by: str | None, *, seconds: float, bucket_seconds: float) -> Call[str]:
    return Call(
        "select fenceline.stats_throughput($1, $2, $3, $4)",
        (tenant, created_by, float(seconds), float(bucket_seconds)),
        _text,
        repeatable=True,
    )


def slow(
    tenant: str | None, created_by: str | None, *, seconds: float, kinds: list[str] | None, limit: int
) -> Call[str]:
    return Call(
        "select fenceline.stats_slow($1, $2, $3, $4, $5)",
        (tenant, created_by, float(seconds), kinds, limit),
        _text,
        repeatable=True,
    )
