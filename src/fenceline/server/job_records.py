"""What is kept of a job: attempts, steps, phases, log lines, events. A page has about 4 MiB at most."""

import re
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Response
from pydantic_core import from_json

from fenceline.database import calls
from fenceline.database.call import Call, page_of, texts_of
from fenceline.model.job import Checkpoint, LogLine, PhaseRecord, StepRecord
from fenceline.model.records import AttemptRecord, JobEvent
from fenceline.server.filters import Cursor, Limit, read_skipped
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, list_response, operation, read_job_id, router
from fenceline.server.schemas import AT
from fenceline.server.views import View, examples, list_of, shows

routes = router("jobs")

ATTEMPT_ID = "6f1c1b0e-6f0a-4a53-9d3b-0c8f0a3f3f10"
NO_CHECKPOINT = '{"state": null, "token": null, "updated_at": null}'
_CURSOR = re.compile(r"(\d{1,18})-(\d{1,9})", re.ASCII)


@shows(AttemptRecord)
class AttemptView(View):
    model_config = examples(
        {
            "attempt_id": ATTEMPT_ID, "token": 1, "number": 1, "worker": "web-1", "claimed_at": AT,
            "started_at": AT, "ended_at": AT, "outcome": "failed", "final": False,
            "error": {"type": "ConnectionError", "message": "no route to host"}, "actor": None,
            "metadata": None,
        },
        title="Attempt",
    )  # fmt: skip

    attempt_id: UUID | None


@shows(StepRecord)
class StepView(View):
    """`listed`: named up front, still to come. `token` tells the attempt."""

    model_config = examples(
        {
            "name": "load", "status": "done", "result": {"rows": 3}, "error": None, "token": 1,
            "ran_seconds": 0.5, "ended_at": AT,
        },
        title="Step",
    )  # fmt: skip


StepList = list_of(StepView, has_pages=True)


@shows(Checkpoint)
class CheckpointView(View):
    model_config = examples({"state": {"row": 1200}, "token": 1, "updated_at": AT}, title="Checkpoint")


@shows(PhaseRecord)
class PhaseView(View):
    """`phase` is null for progress before the first one. `progress.items` has its items by set."""

    model_config = examples(
        {
            "phase": "load",
            "progress": {
                "items": {
                    "in_progress": [], "completed": ["a"], "skipped": [{"item": "b", "reason": "closed"}],
                    "failed": [{"item": "c", "error": "disk full"}],
                }
            },
            "attempt": 1, "token": 1, "started_at": AT, "ended_at": AT,
        },
        title="Phase",
    )  # fmt: skip


PhaseList = list_of(PhaseView, has_pages=True)


AttemptList = list_of(AttemptView, has_pages=True)


@shows(LogLine)
class LogLineView(View):
    """`token` tells the attempt, `line` the place in it."""

    model_config = examples(
        {"token": 1, "line": 1, "at": AT, "level": "info", "message": "reading", "fields": {"path": "a"}},
        title="LogLine",
    )


class LogList(View):
    items: list[LogLineView]
    next_cursor: str | None


@shows(JobEvent)
class JobEventView(View):
    """`actor` is a person or a worker."""

    model_config = examples(
        {"at": AT, "event": "attempt.claim", "actor": "web-1", "reason": None, "details": {"attempt": 1}},
        title="JobEvent",
    )


JobEventList = list_of(JobEventView, has_pages=True)


@routes.get("/v1/jobs/{id}/attempts", **operation("jobs:read", "not_found", "invalid", model=AttemptList))
async def list_attempts(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """Every attempt, first to last, the live one included; one without `attempt_id` is a job that ended unclaimed."""
    return await _records(request, calls.job_records.list_attempts(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/steps", **operation("jobs:read", "not_found", "invalid", model=StepList))
async def list_steps(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """Its steps in order: done with which result, failed, or still to come."""
    return await _records(request, calls.job_records.list_steps(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/checkpoint", **operation("jobs:read", "not_found", "invalid", model=CheckpointView))
async def read_checkpoint(request: ApiRequest, id: str) -> Response:
    """The state that its handler saved last, from which the next attempt resumes; all null if there is none."""
    call = calls.job_records.get_checkpoint(read_job_id(id), request.identity)
    kept = await request.database.call(texts_of(call))
    return json_response(kept[0] if kept else NO_CHECKPOINT)


@routes.get("/v1/jobs/{id}/phases", **operation("jobs:read", "not_found", "invalid", model=PhaseList))
async def list_phases(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """The phases of all its attempts in order, each with the progress and the items that it ended with."""
    return await _records(request, calls.job_records.list_phases(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/events", **operation("jobs:read", "not_found", "invalid", model=JobEventList))
async def list_events(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """What happened to the job, in order: enqueued, claimed, started, ended, and actions of people."""
    return await _records(request, calls.job_records.job_events(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/logs", **operation("jobs:read", "not_found", "invalid", model=LogList))
async def read_log(
    request: ApiRequest,
    id: str,
    limit: Limit = 1000,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the previous page.")] = None,
) -> Response:
    """Log lines of all attempts in order."""
    after = (0, 0)
    if cursor is not None:
        place = _CURSOR.fullmatch(cursor)
        if place is None or int(place[2]) > 2**31 - 1:
            message = "use the next_cursor of the page before"
            raise Problem("invalid", f"cursor: {message}", errors=[{"field": "cursor", "message": message}])
        after = (int(place[1]), int(place[2]))
    call = calls.job_records.read_log(read_job_id(id), request.identity, after=after, limit=limit)
    found, following = await request.database.call(page_of(call))
    last = from_json(found[-1]) if following is not None or len(found) == limit else None
    return list_response(found, None if last is None else f"{last['token']}-{last['line']}")


async def _records(request: ApiRequest, call: Call[list[Any]], cursor: str | None) -> Response:
    found, following = await request.database.call(page_of(call, read_skipped(cursor)))
    return list_response(found, following)
