"""Lanes: their settings, what waits in them, and what a worker or runner has to know about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fenceline.database.call import As, Call, function, jsonb, rows_of, statement, tuples_of, value_of
from fenceline.database.decoding import nothing, records
from fenceline.model.identity import Identity
from fenceline.model.job import Lane


def describe_lanes(
    name: str | None = None, tenant: str | None = None, *, without: Sequence[str] = ()
) -> Call[list[Lane]]:
    """Figures are those of one tenant, or of all. `without`: fields to leave out of the JSON."""
    return statement(
        "select r - {} from {} r",
        As("text[]", without),
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
    """`create`: whether it must be new (True) or must exist (False); None: either."""
    return value_of(function("set_lane", locals(), changes=jsonb(changes)), nothing, repeatable=create is not True)


def delete_lane(name: str, *, actor: str | None, actor_tenant: str | None = None) -> Call[None]:
    return value_of(function("delete_lane", locals()), nothing)


def depth(lane: str | None = None, tenant: str | None = None) -> Call[int]:
    return value_of(function("depth", locals()), repeatable=True)


def lane_rates(seconds: float, tenant: str | None = None) -> Call[dict[str, float]]:
    return rows_of(function("lane_rates", locals()), "lane, per_second", dict, repeatable=True)


def rate_pauses(lanes: list[str]) -> Call[dict[str, float]]:
    """In how many seconds each lane's rate limit allows the next claim; lanes without a limit are left out."""
    return rows_of(function("rate_pauses", locals()), "lane, seconds", dict, repeatable=True)


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
    return tuples_of(LaneForWorker, function("worker_lanes", locals()))


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
    return tuples_of(LaneForRunner, function("runner_lanes", locals(), owner=viewer.owner))
