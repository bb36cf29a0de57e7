"""What the server asks of the state machine on behalf of runners: every statement names the runner's owner."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.calls import Call, Row, column, scalar
from fenceline.model.identity import Identity
from fenceline.model.json_text import stored_json


@dataclass(frozen=True, slots=True)
class LaneForRunner:
    """A lane with something to claim: plain jobs, or suspects that must run alone, as an idle runner could.

    `request_id`: what to claim under there. `answered`: that was done before, and its answer is to be given again.
    """

    name: str
    request_id: UUID
    plain: bool
    suspects: bool
    idle: bool
    answered: bool


def owner_of(identity: Identity) -> str:
    """Who a runner belongs to: the very token that registered it, or the one whom an identity provider names."""
    if identity.token_id is not None:
        return f"token {identity.token_id}"
    return f"actor {identity.tenant} {identity.actor}"


def register_runner(
    identity: Identity,
    name: str,
    *,
    lease_seconds: float,
    lanes: Sequence[str] | None,
    kinds: Sequence[str] | None,
    labels: Mapping[str, str] | None,
    host: str | None,
    version: str | None,
) -> Call[int]:
    return Call(
        "select fenceline.register_worker($1, $2, $3, $4, $5, null, $6, null, true, cast($7 as jsonb), $8, $9)",
        (
            name,
            lease_seconds,
            None if kinds is None else list(kinds),
            None if lanes is None else list(lanes),
            host,
            version,
            None if labels is None else json.dumps(dict(labels)),
            identity.reach,
            owner_of(identity),
        ),
        scalar,
        repeatable=True,  # a runner registered twice is one that never claims
    )


def heartbeat(runner_id: int, identity: Identity, held: Sequence[UUID] | None) -> Call[str]:
    """The answer as JSON text. Raises UnknownRunner, WorkerLost."""
    return Call(
        "select fenceline.runner_heartbeat($1, $2, $3)",
        (runner_id, owner_of(identity), None if held is None else list(held)),
        scalar,
        repeatable=True,
    )


def stop_runner(runner_id: int, identity: Identity, fail_kinds: Sequence[str]) -> Call[int]:
    return Call(
        "select fenceline.stop_worker(fenceline.own_runner($1, $2), $3)",
        (runner_id, owner_of(identity), list(fail_kinds) or None),
        scalar,
    )


def report_crash(
    runner_id: int, identity: Identity, suspects: Sequence[UUID] | None, error: Mapping[str, Any]
) -> Call[int]:
    return Call(
        "select fenceline.report_crash(fenceline.own_runner($1, $2), $3, cast($4 as jsonb))",
        (runner_id, owner_of(identity), None if suspects is None else list(suspects), stored_json(dict(error))),
        scalar,
    )


def runner_lanes(
    runner_id: int, identity: Identity, lanes: Sequence[str] | None, request_id: UUID
) -> Call[list[LaneForRunner]]:
    return Call(
        "select name, request_id, plain, suspects, idle, answered from fenceline.runner_lanes($1, $2, $3, $4)",
        (runner_id, owner_of(identity), None if lanes is None else list(lanes), request_id),
        lambda rows: [LaneForRunner(*row) for row in rows],
        repeatable=True,
    )


def await_jobs(runner_id: int, identity: Identity, lanes: Sequence[str] | None, wait_seconds: float) -> Call[list[str]]:
    return Call(
        "select fenceline.await_jobs($1, $2, $3, $4)",
        (runner_id, owner_of(identity), None if lanes is None else list(lanes), wait_seconds),
        scalar,
        repeatable=True,
    )


def claim(
    runner_id: int,
    identity: Identity,
    lane: str,
    limit: int,
    *,
    kinds: Sequence[str] | None,
    request_id: UUID,
    alone: bool,
) -> Call[list[str]]:
    """One JSON text per attempt."""
    return Call(
        "select claim from fenceline.claim_for_runner($1, $2, $3, $4, $5, $6, $7) claim",
        (runner_id, owner_of(identity), lane, limit, None if kinds is None else list(kinds), request_id, alone),
        column,
        repeatable=True,  # by its request id
    )


def runner_attempt(job_id: int, attempt_id: UUID, identity: Identity) -> Call[str]:
    """`live` or `ended`. Raises NotFound, StaleAttempt, ForeignAttempt."""
    return Call(
        "select fenceline.runner_attempt($1, $2, $3, $4)",
        (job_id, attempt_id, owner_of(identity), identity.reach),
        scalar,
        repeatable=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How an attempt ends; result, error, errors and metadata are JSON text."""

    job_id: int
    attempt_id: UUID
    outcome: str
    result: str | None = None
    error: str | None = None
    errors: str | None = None
    delay_seconds: float | None = None
    ran_seconds: float | None = None
    metadata: str | None = None


FINISH_SQL = (
    "select place, verdict from fenceline.finish_as_runner("
    "$1, $2, $3, $4, $5, cast($6 as jsonb[]), cast($7 as jsonb[]), cast($8 as jsonb[]), $9, $10, "
    "cast($11 as jsonb[]), $12)"
)


def finish(identity: Identity, ends: Sequence[Finish], *, finalized: bool = False) -> Call[list[str]]:
    """A verdict for each: accepted, already, stale, forbidden, not_found or finalizer."""

    def column(values: list[Any]) -> list[Any] | None:
        return values if any(value is not None for value in values) else None

    def decode(rows: Sequence[Row]) -> list[str]:
        verdicts = ["accepted"] * len(ends)
        for place, verdict in rows:
            verdicts[place - 1] = verdict
        return verdicts

    return Call(
        FINISH_SQL,
        (
            owner_of(identity),
            identity.reach,
            [end.job_id for end in ends],
            [end.attempt_id for end in ends],
            [end.outcome for end in ends],
            column([end.result for end in ends]),
            column([end.error for end in ends]),
            column([end.errors for end in ends]),
            column([end.delay_seconds for end in ends]),
            column([end.ran_seconds for end in ends]),
            column([end.metadata for end in ends]),
            finalized,
        ),
        decode,
        repeatable=True,  # an exact repeat answers `already`
    )


def write_log(job_id: int, attempt_id: UUID, lines: Sequence[Mapping[str, Any]], offset: int | None) -> Call[bool]:
    """False: the attempt is stale. With an offset it is safe to repeat."""
    return Call(
        "select fenceline.write_log($1, $2, cast($3 as jsonb), $4)",
        (job_id, attempt_id, stored_json(list(lines)), offset),
        scalar,
        repeatable=offset is not None,
    )


def live_claim(job_id: int, attempt_id: UUID) -> Call[Row | None]:
    """The columns of an `Attempt`; None: it is gone."""
    return Call(
        "select lane, job_id, attempt_id, token, number, kind, args, tenant, priority, seq, max_attempts, "
        "timeout_seconds, alone, more from fenceline.live_claim($1, $2)",
        (job_id, attempt_id),
        lambda rows: rows[0] if rows else None,
        repeatable=True,
    )


def read_job(job_id: int, identity: Identity) -> Call[str]:
    """The job as JSON text, for whoever has just written to it."""
    return Call("select fenceline.get_job($1, $2)", (job_id, identity.reach), scalar, repeatable=True)
