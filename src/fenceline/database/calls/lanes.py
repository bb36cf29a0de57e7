"""Lanes: their settings, what waits in them, and what of them a worker or runner has to know."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, function, rows_of, statement, value_of
from fenceline.database.decoding import Row, nothing, records, tuples
from fenceline.model.identity import Identity
from fenceline.model.job import Lane


def describe_lanes(
    name: str | None = None, tenant: str | None = None, *, without: Sequence[str] = ()
) -> Call[list[Lane]]:
    """What is measured is of that tenant only; None: of all. `without`: fields that are left out of the JSON."""
    return statement(
        "select r - {} from {} r",
        As("text[]", list(without)),
        function("describe_lanes", name=name, tenant=tenant),
        decode=records(Lane),
        repeatable=True,
    )


def set_lane(
    name: str,
    changes: Mapping[str, Any],
    *,
    actor: str | None,
    create: bool | None,
    actor_tenant: str | None = None,
) -> Call[None]:
    """`create` True: it must be new, False: it must be there, None: either."""
    called = function(
        "set_lane",
        name=name,
        changes=As("jsonb", json.dumps(dict(changes))),
        actor=actor,
        create=create,
        actor_tenant=actor_tenant,
    )
    return value_of(called, nothing, repeatable=create is not True)


def delete_lane(name: str, *, actor: str | None, actor_tenant: str | None = None) -> Call[None]:
    return value_of(function("delete_lane", name=name, actor=actor, actor_tenant=actor_tenant), nothing)


def depth(lane: str | None = None, tenant: str | None = None) -> Call[int]:
    return value_of(function("depth", lane=lane, tenant=tenant), repeatable=True)


def lane_rates(seconds: float, tenant: str | None = None) -> Call[dict[str, float]]:
    called = function("lane_rates", seconds=seconds, tenant=tenant)
    return rows_of(called, "lane, per_second", _by_lane, repeatable=True)


def rate_pauses(lanes: list[str]) -> Call[dict[str, float]]:
    """In how many seconds each lane's rate limit allows the next claim; lanes without one are left out."""
    return rows_of(function("rate_pauses", lanes=lanes), "lane, seconds", _by_lane, repeatable=True)


def _by_lane(rows: Sequence[Row]) -> dict[str, float]:
    return {lane: value for lane, value in rows}  # noqa: C416 - rows are of the driver's own type


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


def worker_lanes(lanes: list[str] | None, worker_id: int) -> Call[list[LaneForWorker]]:
    return rows_of(
        function("worker_lanes", lanes=lanes, worker_id=worker_id),
        "name, slots, poll_interval_ms, enabled, limited, suspects, ready, wanted, expected",
        tuples(LaneForWorker),
        repeatable=True,
    )


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


def runner_lanes(
    runner_id: int, viewer: Identity, lanes: Sequence[str] | None, request_id: UUID
) -> Call[list[LaneForRunner]]:
    called = function(
        "runner_lanes",
        runner_id=runner_id,
        owner=viewer.owner,
        lanes=None if lanes is None else list(lanes),
        request_id=request_id,
    )
    return rows_of(called, "name, request_id, plain, suspects, idle, answered", tuples(LaneForRunner), repeatable=True)
