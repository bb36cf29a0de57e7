"""What is kept of a job: attempts, log lines, events."""

import re
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Response
from pydantic import AwareDatetime, ConfigDict
from pydantic_core import from_json

from fenceline.database import operator_calls
from fenceline.server.problems import Problem
from fenceline.server.queries import Limit
from fenceline.server.routing import ApiRequest, list_response, operation, read_job_id, router
from fenceline.server.schemas import AT, View

routes = router("jobs")

ATTEMPT_ID = "6f1c1b0e-6f0a-4a53-9d3b-0c8f0a3f3f10"
_CURSOR = re.compile(r"(\d{1,18})-(\d{1,9})", re.ASCII)


class AttemptView(View):
    model_config = ConfigDict(
        title="Attempt",
        json_schema_extra={
            "examples": [
                {
                    "attempt_id": ATTEMPT_ID, "token": 1, "number": 1, "worker": "web-1", "claimed_at": AT,
                    "started_at": AT, "ended_at": AT, "outcome": "failed", "final": False,
                    "error": {"type": "ConnectionError", "message": "no route to host"}, "actor": None,
                    "metadata": None,
                }
            ]
        },
    )  # fmt: skip

    attempt_id: UUID | None
    token: int | None
    number: int | None
    worker: str | None
    claimed_at: AwareDatetime | None
    started_at: AwareDatetime | None
    ended_at: AwareDatetime | None
    outcome: str | None
    final: bool
    error: dict[str, Any] | None
    actor: str | None
    metadata: dict[str, Any] | None


class AttemptList(View):
    items: list[AttemptView]
    next_cursor: None


class LogLineView(View):
    """`token` tells the attempt, `line` the place in it."""

    model_config = ConfigDict(
        title="LogLine",
        json_schema_extra={
            "examples": [
                {"token": 1, "line": 1, "at": AT, "level": "info", "message": "reading", "fields": {"path": "a"}}
            ]
        },
    )

    token: int
    line: int
    at: AwareDatetime
    level: str
    message: str
    fields: Any


class LogList(View):
    items: list[LogLineView]
    next_cursor: str | None


class JobEventView(View):
    """`actor` is a person or a worker."""

    model_config = ConfigDict(
        title="JobEvent",
        json_schema_extra={
            "examples": [
                {"at": AT, "event": "attempt.claim", "actor": "web-1", "reason": None, "details": {"attempt": 1}}
            ]
        },
    )

    at: AwareDatetime
    event: str
    actor: str | None
    reason: str | None
    details: dict[str, Any] | None


class JobEventList(View):
    items: list[JobEventView]
    next_cursor: None


@routes.get("/v1/jobs/{id}/attempts", **operation("jobs:read", "not_found", "invalid", model=AttemptList))
async def list_attempts(request: ApiRequest, id: str) -> Response:  # noqa: A002 - the contract's name
    """Every attempt, first to last, the live one included; one without `attempt_id` is a job that ended unclaimed."""
    found = await request.caller.call(operator_calls.list_attempts(read_job_id(id), request.identity))
    return list_response(found)


@routes.get("/v1/jobs/{id}/events", **operation("jobs:read", "not_found", "invalid", model=JobEventList))
async def list_events(request: ApiRequest, id: str) -> Response:  # noqa: A002 - as above
    """What happened to the job, first to last: made, claimed, started, ended, and what people did to it."""
    found = await request.caller.call(operator_calls.job_events(read_job_id(id), request.identity))
    return list_response(found)


@routes.get("/v1/jobs/{id}/logs", **operation("jobs:read", "not_found", "invalid", model=LogList))
async def read_log(
    request: ApiRequest,
    id: str,  # noqa: A002 - as above
    limit: Limit = 1000,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before; lines after it.")] = None,
) -> Response:
    """Log lines of all attempts in order."""
    after = (0, 0)
    if cursor is not None:
        place = _CURSOR.fullmatch(cursor)
        if place is None or int(place[2]) > 2**31 - 1:
            message = "use the next_cursor of the page before"
            raise Problem("invalid", f"cursor: {message}", errors=[{"field": "cursor", "message": message}])
        after = (int(place[1]), int(place[2]))
    found = await request.caller.call(
        operator_calls.read_log(read_job_id(id), request.identity, after=after, limit=limit)
    )
    last = from_json(found[-1]) if len(found) == limit else None
    return list_response(found, None if last is None else f"{last['token']}-{last['line']}")
