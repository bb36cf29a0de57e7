"""What operators ask of the fleet over HTTP: lanes, status, bulk verbs, drain, audit, records of a job."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fenceline.database.calls import Call, Row, column, nothing, scalar
from fenceline.database.server_calls import Filter
from fenceline.errors import SQLSTATES
from fenceline.model.identity import Identity

LANE_FIELDS = (
    "name, kinds, slots, in_use, depth, oldest_age_seconds, poll_interval_ms, stale_timeout_seconds, on_stale, "
    "enabled, rate_per_second, burst, fair, ageing_seconds"
)


@dataclass(frozen=True, slots=True)
class BulkCounts:
    """One page of a bulk verb: how many jobs there were, how many were changed, and why the others were not."""

    matched: int
    changed: int
    reasons: dict[str, int]
    next_cursor: int | None


def lanes(name: str | None, tenant: str | None) -> Call[list[str]]:
    """Each lane as JSON text; what is measured, of that tenant only (None: of all)."""
    return Call(
        f"select to_jsonb(n) from (select {LANE_FIELDS} from fenceline.lanes($1, $2)) n",  # noqa: S608 - a constant
        (name, tenant),
        column,
        repeatable=True,
    )


def set_lane(name: str, changes: Mapping[str, Any], identity: Identity, *, create: bool) -> Call[None]:
    return Call(
        "select fenceline.set_lane($1, cast($2 as jsonb), $3, $4, $5)",
        (name, json.dumps(dict(changes)), identity.actor, create, identity.tenant),
        nothing,
    )


def delete_lane(name: str, identity: Identity) -> Call[None]:
    return Call("select fenceline.delete_lane($1, $2, $3)", (name, identity.actor, identity.tenant), nothing)


def depth(lane: str | None, tenant: str | None) -> Call[int]:
    return Call("select fenceline.depth($1, $2)", (lane, tenant), scalar, repeatable=True)


def fleet_status(tenant: str | None) -> Call[str]:
    return Call("select fenceline.fleet_status($1)", (tenant,), scalar, repeatable=True)


def drain_system(identity: Identity, *, draining: bool, reason: str | None) -> Call[None]:
    return Call(
        "select fenceline.drain_system($1, $2, $3, $4)",
        (draining, identity.actor, reason, identity.tenant),
        nothing,
        repeatable=True,
    )


def list_events(
    identity: Identity,
    *,
    subject: str | None,
    actor: str | None,
    action: str | None,
    tenant: str | None,
    limit: int,
    cursor: int | None,
) -> Call[list[str]]:
    return Call(
        "select to_jsonb(e) || jsonb_build_object('id', fenceline.public_id(e.id)) "
        "from fenceline.list_events($1, $2, $3, $4, $5, $6) e where $7::text is null or e.tenant = $7",
        (subject, limit, cursor, identity.reach or tenant, actor, action, tenant),
        column,
        repeatable=True,
    )


def list_attempts(job_id: int, identity: Identity) -> Call[list[str]]:
    return Call(
        "select to_jsonb(a) from fenceline.list_attempts(fenceline.visible_job_id($1, $2, $3)) a",
        (job_id, identity.reach, identity.only_created_by),
        column,
        repeatable=True,
    )


def job_events(job_id: int, identity: Identity) -> Call[list[str]]:
    return Call(
        "select to_jsonb(e) from fenceline.job_events(fenceline.visible_job_id($1, $2, $3)) e",
        (job_id, identity.reach, identity.only_created_by),
        column,
        repeatable=True,
    )


def read_log(job_id: int, identity: Identity, *, after: tuple[int, int], limit: int) -> Call[list[str]]:
    return Call(
        "select to_jsonb(l) from fenceline.read_log(fenceline.visible_job_id($1, $2, $3), $4, $5, $6) l",
        (job_id, identity.reach, identity.only_created_by, *after, limit),
        column,
        repeatable=True,
    )


def bulk_jobs(
    verb: str,
    identity: Identity,
    *,
    reason: str | None,
    force: bool,
    priority: int | None,
    dry_run: bool,
    job_ids: list[int] | None,
    filters: Filter,
    cursor: int | None,
) -> Call[BulkCounts]:
    def decode(rows: Sequence[Row]) -> BulkCounts:
        matched, changed, refused, next_cursor = rows[0]
        reasons = {SQLSTATES[state].code: count for state, count in json.loads(refused).items()}
        return BulkCounts(matched, changed, reasons, next_cursor)

    *conditions, _created_by = filters.parameters(identity)
    return Call(
        "select matched, changed, refused, next_cursor from fenceline.bulk_jobs("
        "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, cast($14 as jsonb), $15, $16, p_cursor => $17)",
        (
            verb,
            identity.actor,
            identity.reach,
            identity.only_created_by,
            reason,
            force,
            priority,
            dry_run,
            job_ids,
            *conditions,
            cursor,
        ),
        decode,
        repeatable=dry_run,
    )
