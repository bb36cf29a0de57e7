"""Schedules: what they are, what operators say about them, and how their ticks are decided."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.database.call import As, Call, Sql, function, rows_of, statement, value_of
from fenceline.database.calls.enqueue import Enqueued, enqueued
from fenceline.database.decoding import Row, column, nothing, record, records, scalar
from fenceline.model.identity import Identity
from fenceline.model.schedule import Decision, Schedule, Tick

#: What schedulers keep for themselves.
_INNER = Sql("array['revision', 'settled_at', 'now']")


def schedules(name: str | None = None) -> Call[list[Schedule]]:
    return rows_of(function("schedules", name=name), "r", records(Schedule), repeatable=True)


def schedules_in_reach(viewer: Identity, name: str | None = None) -> Call[list[str]]:
    """Each as JSON text."""
    called = function("schedules_in_reach", tenant=viewer.reach, name=name)
    return statement("select r - {} from {} r", _INNER, called, decode=column, repeatable=True)


def list_ticks(name: str, limit: int) -> Call[list[Tick]]:
    return rows_of(function("list_ticks", name=name, limit=limit), "to_jsonb(r)", records(Tick), repeatable=True)


def ticks_in_reach(viewer: Identity, name: str, limit: int) -> Call[list[Tick]]:
    called = function("ticks_in_reach", tenant=viewer.reach, name=name, limit=limit)
    return rows_of(called, "to_jsonb(r)", records(Tick), repeatable=True)


def set_schedule(name: str, changes: Mapping[str, Any], *, actor: str | None, create: bool | None) -> Call[Schedule]:
    called = function("set_schedule", name=name, changes=As("jsonb", json.dumps(changes)), actor=actor, create=create)
    return value_of(called, record(Schedule), repeatable=create is not True)


def act_on_schedule(name: str, verb: str, viewer: Identity, changes: Mapping[str, Any] | None = None) -> Call[str]:
    """The schedule afterwards, or for `run` the job, as JSON text; nothing when it was deleted."""

    def decode(rows: Sequence[Row]) -> str:
        return scalar(rows) or ""

    called = function(
        "act_on_schedule",
        name=name,
        verb=verb,
        changes=As("jsonb", json.dumps(dict(changes or {}))),
        actor=viewer.actor,
        tenant=viewer.reach,
        own_tenant=viewer.tenant,
    )
    return statement("select {} - {}", called, _INNER, decode=decode)


def delete_schedule(name: str, *, actor: str | None) -> Call[None]:
    return value_of(function("delete_schedule", name=name, actor=actor), nothing)


def run_schedule(name: str, *, actor: str | None) -> Call[Enqueued]:
    return rows_of(function("run_schedule", name=name, actor=actor), "job_id, created", enqueued)


def declare_schedules(declared: Mapping[str, Mapping[str, Any]]) -> Call[None]:
    called = function("declare_schedules", schedules=As("jsonb", json.dumps(declared)))
    return value_of(called, nothing, repeatable=True)


def due_schedules(limit: int) -> Call[list[Schedule]]:
    return rows_of(function("due_schedules", limit=limit), "r", records(Schedule), repeatable=True)


def fire_schedule(schedule: Schedule, decision: Decision) -> Call[int | None]:
    """How many jobs were made; None when it was not our turn, as for a repeat whose first answer was lost."""
    called = function(
        "fire_schedule",
        name=schedule.name,
        revision=schedule.revision,
        expected=schedule.next_at,
        until=decision.until,
        ticks=decision.ticks,
        outcomes=decision.outcomes,
        **{"from": decision.from_at, "next": decision.next_at},
    )
    return value_of(called, repeatable=True)


def defer_schedule(schedule: Schedule, error: str) -> Call[None]:
    called = function("defer_schedule", name=schedule.name, revision=schedule.revision, error=error)
    return value_of(called, nothing, repeatable=True)
