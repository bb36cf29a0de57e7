"""The tables of a test database in one snapshot, and the invariants that need no model."""

from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

_SNAPSHOT = """
select
  (select jsonb_agg(p) from (
     select 'ready' as place, job_id, seq, coalesce(own_priority, priority) as priority, coalesce(number, 0) as number,
            coalesce(token, 0) as token, deaths, null::uuid as attempt_id, null::integer as worker
     from fenceline.ready
     union all
     select 'running', job_id, coalesce(seq, job_id), priority, number, token, deaths, attempt_id, worker_id
     from fenceline.running
     union all
     select 'timer', job_id, seq, priority, coalesce(number, 0), coalesce(token, 0), deaths, null, null
     from fenceline.timer
     union all
     select waiting_for, job_id, seq, priority, coalesce(number, 0), coalesce(token, 0), deaths, null, null
     from fenceline.held
     union all
     select outcome, job_id, null, null, null, null, null, attempt_id, null from fenceline.history where final) p),
  (select jsonb_agg(jsonb_build_array(job_id, attempt_id, token)) from fenceline.history
   where attempt_id is not null),
  (select jsonb_object_agg(job_id, jsonb_build_array(status, waiting_for)) from fenceline.jobs),
  (select jsonb_agg(id) from fenceline.job),
  (select jsonb_agg(jsonb_build_array(name, job_id)) from fenceline.resource_lock),
  (select jsonb_agg(jsonb_build_array(d.key, i)) from fenceline.dedupe d, unnest(d.job_id || d.earlier) i),
  (select jsonb_agg(jsonb_build_array(key, job_id)) from fenceline.key_holder),
  (select jsonb_agg(jsonb_build_array(after_id, waiter_id)) from fenceline.dependency),
  (select jsonb_agg(id) from fenceline.worker where stopped_at is null)
"""

# Everything but the schema itself. Deleting from small tables is ten times as fast as truncating them.
RESET = """
delete from fenceline.job; delete from fenceline.history; delete from fenceline.ready; delete from fenceline.running;
delete from fenceline.timer; delete from fenceline.held; delete from fenceline.event; delete from fenceline.log;
delete from fenceline.progress; delete from fenceline.phase; delete from fenceline.offspring;
delete from fenceline.refused_write; delete from fenceline.refusal;
delete from fenceline.dedupe; delete from fenceline.idempotency;
delete from fenceline.resource_lock; delete from fenceline.key_holder; delete from fenceline.key_check;
delete from fenceline.dedupe_check; delete from fenceline.lane_check;
delete from fenceline.dependency; delete from fenceline.dependency_check; delete from fenceline.deadline;
delete from fenceline.claim_request; delete from fenceline.waiter; delete from fenceline.watch;
delete from fenceline.worker; delete from fenceline.lane_state; delete from fenceline.lane_scan;
delete from fenceline.maintenance;
update fenceline.setting set draining = false;
update fenceline.lane set enabled = true, slots = null, delivery = null where name in ('default', 'narrow');
delete from fenceline.message; delete from fenceline.step;
delete from fenceline.wait; delete from fenceline.signal; delete from fenceline.signal_check;
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Where one job is, and what travels with it; a finished job has a place and the attempt that ended it."""

    place: str
    job_id: int
    seq: int | None
    priority: int | None
    number: int | None
    token: int | None
    deaths: int | None
    attempt_id: UUID | None
    worker: int | None


@dataclass(frozen=True, slots=True)
class Observed:
    rows: dict[int, Row]
    ended_attempts: list[tuple[int, UUID, int]]
    statuses: dict[int, tuple[str, str | None]]
    locks: set[tuple[str, int]]
    dedupes: set[tuple[str, int]]
    key_holders: set[tuple[str, int]]
    dependencies: set[tuple[int, int]]
    live_workers: set[int]


def observe(connection: psycopg.Connection) -> Observed:
    """Read the database, and check what must hold whatever was done to it."""
    found = connection.execute(_SNAPSHOT).fetchone()
    assert found is not None
    places, ended, statuses, jobs, locks, dedupes, holders, dependencies, workers = (part or [] for part in found)
    rows = [_row(place) for place in places]

    times = Counter(row.job_id for row in rows)
    assert times == Counter(jobs), f"every job is in exactly one place: {times}, jobs {jobs}"
    live = [(row.job_id, row.attempt_id) for row in rows if row.place == "running"]
    over = [(job_id, UUID(attempt_id), token) for job_id, attempt_id, token in ended]
    fences = Counter(fence for _, fence in live) + Counter(fence for _, fence, _ in over)
    assert set(fences.values()) <= {1}, "a fence is used once, and gone when its attempt has ended"
    tokens = Counter((job_id, token) for job_id, _, token in over)
    tokens += Counter((row.job_id, row.token) for row in rows if row.place == "running")
    assert set(tokens.values()) <= {1}, "a token is given once per job"
    assert {row.worker for row in rows if row.worker is not None} <= set(workers), "attempts of live workers only"

    return Observed(
        rows={row.job_id: row for row in rows},
        ended_attempts=over,
        statuses={int(job_id): (status, waiting) for job_id, (status, waiting) in dict(statuses).items()},
        locks=_pairs(locks),
        dedupes=_pairs(dedupes),
        key_holders=_pairs(holders),
        dependencies=_pairs(dependencies),
        live_workers=set(workers),
    )


def _row(place: dict[str, Any]) -> Row:
    attempt_id = place.pop("attempt_id")
    return Row(**place, attempt_id=UUID(attempt_id) if attempt_id else None)


def _pairs(rows: list[list[Any]]) -> set[tuple[Any, Any]]:
    pairs = {(first, second) for first, second in rows}
    assert len(pairs) == len(rows), f"twice in a table: {rows}"
    return pairs
