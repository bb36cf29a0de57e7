"""The operations on schedules, as `Call`s."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fenceline.database.calls import Call, Enqueued, Row, nothing
from fenceline.model.schedule import Decision, Schedule, Tick


def _schedules(rows: Sequence[Row]) -> list[Schedule]:
    return [Schedule.from_json(json.loads(text)) for (text,) in rows]


def schedules(name: str | None = None) -> Call[list[Schedule]]:
    return Call("select s from fenceline.schedules($1) s", (name,), _schedules, repeatable=True)


def list_ticks(name: str, limit: int) -> Call[list[Tick]]:
    return Call(
        "select tick_at, outcome, decided_at, from_at, job, error from fenceline.list_ticks($1, $2)",
        (name, limit),
        lambda rows: [
            Tick(tick_at=r[0], outcome=r[1], decided_at=r[2], from_at=r[3], job=r[4], error=r[5]) for r in rows
        ],
        repeatable=True,
    )


def set_schedule(name: str, changes: Mapping[str, Any], *, actor: str | None, create: bool | None) -> Call[Schedule]:
    return Call(
        "select fenceline.set_schedule($1, cast($2 as jsonb), $3, $4)",
        (name, json.dumps(changes), actor, create),
        lambda rows: _schedules(rows)[0],
        repeatable=create is not True,
    )


def delete_schedule(name: str, *, actor: str | None) -> Call[None]:
    return Call("select fenceline.delete_schedule($1, $2)", (name, actor), nothing)


def run_schedule(name: str, *, actor: str | None) -> Call[Enqueued]:
    return Call(
        "select job_id, created from fenceline.run_schedule($1, $2)",
        (name, actor),
        lambda rows: Enqueued(rows[0][0], rows[0][1]),
    )


def declare_schedules(declared: Mapping[str, Mapping[str, Any]]) -> Call[None]:
    return Call(
        "select fenceline.declare_schedules(cast($1 as jsonb))", (json.dumps(declared),), nothing, repeatable=True
    )


def due_schedules(limit: int) -> Call[list[Schedule]]:
    return Call("select s from fenceline.due_schedules($1) s", (limit,), _schedules, repeatable=True)


def fire_schedule(schedule: Schedule, decision: Decision) -> Call[int | None]:
    """How many jobs were made; None when it was not our turn, as for a repeat whose first answer was lost."""
    return Call(
        "select fenceline.fire_schedule($1, $2, $3, $4, $5, $6, $7, $8)",
        (
            schedule.name,
            schedule.revision,
            schedule.next_at,
            decision.until,
            decision.ticks,
            decision.outcomes,
            decision.from_at,
            decision.next_at,
        ),
        lambda rows: None if rows[0][0] is None else int(rows[0][0]),
        repeatable=True,
    )


def defer_schedule(schedule: Schedule, error: str) -> Call[None]:
    return Call(
        "select fenceline.defer_schedule($1, $2, $3)",
        (schedule.name, schedule.revision, error),
        nothing,
        repeatable=True,
    )
