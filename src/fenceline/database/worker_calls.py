"""The operations of the state machine that workers use, as `Call`s."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.calls import Call, Row, nothing, scalar


@dataclass(frozen=True, slots=True)
class LaneForWorker:
    name: str
    slots: int | None
    poll_interval_ms: int
    enabled: bool
    limited: bool
    suspects: bool
    ready: bool
    wanted: bool
    expected: bool


@dataclass(frozen=True, slots=True)
class Word:
    """What a heartbeat has to say: `lost` about a worker, `cancel` or `stale` about an attempt."""

    worker_id: int
    attempt_id: UUID | None
    word: str


def declare_kinds(kinds: Mapping[str, Mapping[str, Any]]) -> Call[None]:
    return Call("select fenceline.declare_kinds(cast($1 as jsonb))", (json.dumps(kinds),), nothing, repeatable=True)


def register_worker(
    name: str,
    *,
    lease_seconds: float,
    kinds: list[str],
    lanes: list[str] | None,
    host: str,
    pid: int,
    version: str,
) -> Call[int]:
    return Call(
        "select fenceline.register_worker($1, $2, $3, $4, $5, $6, $7)",
        (name, lease_seconds, kinds, lanes, host, pid, version),
        scalar,
        repeatable=True,  # a worker registered twice is one that never claims
    )


def worker_lanes(lanes: list[str] | None, worker_id: int) -> Call[list[LaneForWorker]]:
    return Call(
        "select name, slots, poll_interval_ms, enabled, limited, suspects, ready, wanted, expected "
        "from fenceline.worker_lanes($1, $2)",
        (lanes, worker_id),
        lambda rows: [LaneForWorker(*row) for row in rows],
        repeatable=True,
    )


CLAIM_SQL = (
    "select job_id, attempt_id, token, number, kind, args, tenant, priority, seq, max_attempts, timeout_seconds, "
    "alone, more from fenceline.claim_jobs($1, $2, $3, $9, $4, $5, $6, $7, $8)"
)


def claim_jobs(
    worker_id: int,
    lane: str,
    limit: int,
    *,
    request_id: UUID,
    wait_seconds: float | None,
    alone: bool,
    floors: Mapping[int, int],
    kinds: list[str] | None = None,
) -> Call[list[Row]]:
    """`kinds` None: those that the worker registered with."""
    priorities = sorted(floors, reverse=True)
    return Call(
        CLAIM_SQL,
        (
            worker_id,
            lane,
            limit,
            request_id,
            wait_seconds,
            alone,
            priorities or None,
            [floors[priority] for priority in priorities] or None,
            kinds,
        ),
        list,
        repeatable=True,  # by its request id
    )


def start_attempts(job_ids: list[int], attempt_ids: list[UUID], ran_seconds: list[float]) -> Call[list[Row]]:
    return Call(
        "select job_id, attempt_id from fenceline.start_attempts($1, $2, $3)",
        (job_ids, attempt_ids, ran_seconds),
        list,
        repeatable=True,
    )


FINISH_SQL = "select attempt_id, verdict from fenceline.finish_attempts($1, $2, $3, $4, $5, $6, $7, $8)"


def finish_attempts(columns: Sequence[list[Any] | None]) -> Call[list[Row]]:
    """job_ids, attempt_ids, outcomes, results, errors, error_lists, delays, ran_seconds."""
    return Call(FINISH_SQL, tuple(columns), list, repeatable=True)  # an exact repeat answers `already`


def heartbeat(worker_ids: list[int]) -> Call[list[Word]]:
    return Call(
        "select worker_id, attempt_id, word from fenceline.heartbeat($1)",
        (worker_ids,),
        lambda rows: [Word(*row) for row in rows],
        repeatable=True,
    )


def stop_worker(worker_id: int, fail_kinds: list[str]) -> Call[int]:
    return Call("select fenceline.stop_worker($1, $2)", (worker_id, fail_kinds or None), scalar, repeatable=True)


def report_crash(worker_id: int, suspects: list[UUID], error: Mapping[str, Any]) -> Call[int]:
    return Call(
        "select fenceline.report_crash($1, $2, cast($3 as jsonb))",
        (worker_id, suspects, json.dumps(error)),
        scalar,
        repeatable=True,
    )


def crash_attempt(job_id: int, attempt_id: UUID, error: str | None) -> Call[str]:
    """`error` is JSON text. Answers accepted, already or stale."""
    return Call(
        "select fenceline.crash_attempt($1, $2, cast($3 as jsonb))",
        (job_id, attempt_id, error),
        scalar,
        repeatable=True,
    )


def check_attempts(job_ids: list[int], attempt_ids: list[UUID]) -> Call[list[Row]]:
    """Rows of attempt_id, word (`stale` or `cancel`) and the seconds of grace left; none: all is well."""
    return Call(
        "select attempt_id, word, grace_seconds from fenceline.check_attempts($1, $2)",
        (job_ids, attempt_ids),
        list,
        repeatable=True,
    )


@dataclass(frozen=True, slots=True)
class Maintained:
    """That it was our turn, in how many seconds the next timer or schedule is due, how many schedules are now, and
    whether tenants have limits.
    """

    next_seconds: float | None
    schedules_due: int
    limits_tenants: bool


def maintain(*, interval_seconds: float) -> Call[Maintained | None]:
    """Do the fleet's maintenance unless somebody has within the interval (None)."""

    def decode(rows: Sequence[Row]) -> Maintained | None:
        answer = scalar(rows)
        if answer is None:
            return None
        done = json.loads(answer)
        return Maintained(done["next_seconds"], done["schedules_due"], done["limits_tenants"])

    return Call("select fenceline.maintain($1)", (interval_seconds,), decode, repeatable=True)


def count_tenants() -> Call[None]:
    """Count the unfinished jobs of tenants, unless somebody has within the last second."""
    return Call("select fenceline.count_tenants()", (), nothing, repeatable=True)


def upkeep(*, interval_seconds: float) -> Call[int | None]:
    """Partitions ahead and retention, unless somebody has seen to them within the interval (None)."""
    return Call("select fenceline.upkeep($1)", (interval_seconds,), scalar, repeatable=True)


#: A channel that only tells listeners that they can hear.
CANARY = "fenceline_canary"


def send_canary(payload: str) -> Call[None]:
    return Call("select pg_notify($1, $2)", (CANARY, payload), nothing, repeatable=True)
