"""Schedules over HTTP, as `Call`s that answer with JSON text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.database.calls import Call, Row
from fenceline.model.identity import Identity

#: What schedulers keep for themselves.
_INNER = "array['revision', 'settled_at', 'now']"


def schedules(identity: Identity, name: str | None = None) -> Call[list[str]]:
    return Call(
        f"select s - {_INNER} from fenceline.schedules($1) s where $2::text is null or s ->> 'tenant' = $2",  # noqa: S608 - a constant
        (name, identity.reach),
        lambda rows: [row[0] for row in rows],
        repeatable=True,
    )


def act_on_schedule(name: str, verb: str, identity: Identity, changes: Mapping[str, Any] | None = None) -> Call[str]:
    def decode(rows: Sequence[Row]) -> str:
        return rows[0][0] or ""

    return Call(
        f"select fenceline.act_on_schedule($1, $2, cast($3 as jsonb), $4, $5, $6) - {_INNER}",
        (name, verb, json.dumps(dict(changes or {})), identity.actor, identity.reach, identity.tenant),
        decode,
    )


def list_ticks(name: str, limit: int) -> Call[list[str]]:
    return Call(
        "select to_jsonb(t) from fenceline.list_ticks($1, $2) t",
        (name, limit),
        lambda rows: [row[0] for row in rows],
        repeatable=True,
    )
