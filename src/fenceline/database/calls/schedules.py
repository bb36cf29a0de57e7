"""Schedules: what they are, what operators change about them, and how their ticks are recorded."""

from collections.abc import Mapping
from typing import Any

from fenceline.database.call import Call, Sql, function, jsonb, records_of, rows_of, statement, value_of
from fenceline.database.calls.enqueue import Enqueued, enqueued
from fenceline.database.decoding import column, nothing, record, scalar
from fenceline.model.identity import Identity
from fenceline.model.schedule import Decision, Schedule, Tick

#: Fields that are for schedulers only.
_INNER = Sql("array['revision', 'settled_at', 'now']")


def schedules(name: str | None = None) -> Call[list[Schedule]]:
    return records_of(Schedule, function("schedules", locals()), "r")


def schedules_in_reach(viewer: Identity, name: str | None = None) -> Call[list[str]]:
    """Each as JSON text."""
    called = function("schedules_in_reach", tenant=viewer.reach, name=name)
    return statement("select r - {} from {} r", _INNER, called, decode=column, repeatable=True)


def list_ticks(name: str, limit: int) -> Call[list[Tick]]:
    return records_of(Tick, function("list_ticks", locals()))


def ticks_in_reach(viewer: Identity, name: str, limit: int) -> Call[list[Tick]]:
    return records_of(Tick, function("ticks_in_reach", locals(), tenant=viewer.reach))


def set_schedule(name: str, changes: Mapping[str, Any], *, actor: str | None, create: bool | None) -> Call[Schedule]:
    called = function("set_schedule", locals(), changes=jsonb(changes))
    return value_of(called, record(Schedule), repeatable=create is not True)


def act_on_schedule(name: str, verb: str, viewer: Identity, changes: Mapping[str, Any] | None = None) -> Call[str]:
    """The schedule afterwards, or for `run` the job, as JSON text; empty if it was deleted."""
    called = function(
        "act_on_schedule",
        locals(),
        changes=jsonb(changes or {}),
        actor=viewer.actor,
        tenant=viewer.reach,
        own_tenant=viewer.tenant,
    )
    return statement("select {} - {}", called, _INNER, decode=lambda rows: scalar(rows) or "")


def delete_schedule(name: str, *, actor: str | None) -> Call[None]:
    return value_of(function("delete_schedule", locals()), nothing)


def run_schedule(name: str, *, actor: str | None) -> Call[Enqueued]:
    return rows_of(function("run_schedule", locals()), "job_id, created", enqueued)


def declare_schedules(declared: Mapping[str, Mapping[str, Any]]) -> Call[None]:
    return value_of(function("declare_schedules", schedules=jsonb(declared)), nothing, repeatable=True)


def due_schedules(limit: int) -> Call[list[Schedule]]:
    return records_of(Schedule, function("due_schedules", locals()), "r")


def fire_schedule(schedule: Schedule, decision: Decision) -> Call[int | None]:
    """How many jobs were made; None if another scheduler was first, or this is a repeat whose first answer was lost."""
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
