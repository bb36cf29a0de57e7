"""What is recorded about a job: attempts, steps, phases, log lines, events; why it waits, and which locks it holds.

A page has about 4 MiB at most.
"""

import re
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Response
from pydantic import AwareDatetime, Field
from pydantic_core import from_json

from fenceline.database import calls
from fenceline.database.call import page_of, texts_of
from fenceline.model.explanation import Explanation, Reason
from fenceline.model.job import Checkpoint, LockRecord, LogLine, PhaseRecord, StepRecord
from fenceline.model.records import AttemptRecord, JobEvent
from fenceline.server.filters import Cursor, Limit, answer_page, wrong_cursor
from fenceline.server.routing import ApiRequest, json_response, list_response, operation, read_job_id, router
from fenceline.server.runner_schemas import ATTEMPT_ID
from fenceline.server.schemas import AT, ID
from fenceline.server.views import View, examples, list_of, shows

routes = router("jobs")

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
    """`listed`: announced, still to come. `token` identifies the attempt."""

    model_config = examples(
        {
            "name": "load", "status": "done", "result": {"rows": 3}, "error": None, "token": 1,
            "ran_seconds": 0.5, "ended_at": AT,
        },
        title="Step",
    )  # fmt: skip


@shows(Checkpoint)
class CheckpointView(View):
    model_config = examples({"state": {"row": 1200}, "token": 1, "updated_at": AT}, title="Checkpoint")


@shows(PhaseRecord)
class PhaseView(View):
    """`phase` is null for progress before the first phase. `progress.items` has its items by set."""

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


@shows(LogLine)
class LogLineView(View):
    """`token` identifies the attempt, `line` is the position within it."""

    model_config = examples(
        {"token": 1, "line": 1, "at": AT, "level": "info", "message": "reading", "fields": {"path": "a"}},
        title="LogLine",
    )


@shows(JobEvent)
class JobEventView(View):
    """`actor` is a person or a worker."""

    model_config = examples(
        {"at": AT, "event": "attempt.claim", "actor": "web-1", "reason": None, "details": {"attempt": 1}},
        title="JobEvent",
    )


_REASON: dict[str, Any] = {
    "code": "lane_drained", "text": "Lane default is drained, by ann: nothing in it is started.", "since": AT,
    "until": None, "details": {"lane": "default", "actor": "ann"}, "commands": ["fenceline lanes resume default"],
}  # fmt: skip


@shows(Reason)
class ReasonView(View):
    model_config = examples(_REASON, title="Reason")

    code: Annotated[str, Field(description="A fixed name, for programs.")]
    until: Annotated[AwareDatetime | None, Field(description="When it ends, if known.")]
    details: Annotated[dict[str, Any], Field(description="Holders, counts, workers; what you may not see is left out.")]
    commands: Annotated[list[str], Field(description="What to type to change it.")]


@shows(Explanation)
class ExplanationView(ReasonView):
    model_config = examples(
        {"id": ID, "status": "queued", **_REASON, "also": []},
        title="Explanation",
    )

    also: Annotated[list[ReasonView], Field(description="What would hold the job up next.")]


@shows(LockRecord)
class JobLockView(View):
    model_config = examples(
        {
            "what": "lock", "tenant": "acme", "namespace": "db", "name": "orders", "job": ID,
            "actor": None, "held": True, "since": AT, "holder": None, "holder_actor": None,
        },
        title="JobLock",
    )  # fmt: skip

    what: Annotated[Literal["lock", "resource_lock", "key"], Field(description="`lock`: `ctx.lock` or `app.lock`.")]
    namespace: Annotated[str | None, Field(description="The namespace of a lock.")]
    job: Annotated[str | None, Field(description="The job that has it or waits for it.")]
    actor: Annotated[str | None, Field(description="The actor, if code outside jobs holds it or waits for it.")]
    held: Annotated[bool, Field(description="Whether it is held or waited for.")]
    holder: Annotated[str | None, Field(description="The job that holds what is waited for, if you may see it.")]
    holder_actor: Annotated[str | None, Field(description="Its holder, if that is code outside jobs.")]


@routes.get("/v1/jobs/{id}/attempts", **operation("jobs:read", "not_found", model=list_of(AttemptView)))
async def list_attempts(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """Every attempt in order, including the live one; one without `attempt_id` is the end of a job never claimed."""
    return await answer_page(request, calls.job_records.list_attempts(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/steps", **operation("jobs:read", "not_found", model=list_of(StepView)))
async def list_steps(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """Its steps in order: done with which result, failed, or still to come."""
    return await answer_page(request, calls.job_records.list_steps(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/checkpoint", **operation("jobs:read", "not_found", model=CheckpointView))
async def read_checkpoint(request: ApiRequest, id: str) -> Response:
    """The state that its handler saved last, from which the next attempt resumes; all null without one."""
    found = await request.call(texts_of(calls.job_records.get_checkpoint(read_job_id(id), request.identity)))
    return json_response(found[0] if found else NO_CHECKPOINT)


@routes.get("/v1/jobs/{id}/phases", **operation("jobs:read", "not_found", model=list_of(PhaseView)))
async def list_phases(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """The phases of all its attempts in order, each with the progress and the items that it ended with."""
    return await answer_page(request, calls.job_records.list_phases(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/events", **operation("jobs:read", "not_found", model=list_of(JobEventView)))
async def list_events(request: ApiRequest, id: str, cursor: Cursor = None) -> Response:
    """What happened to the job, in order: enqueued, claimed, started, ended, and actions of people."""
    return await answer_page(request, calls.job_records.job_events(read_job_id(id), request.identity), cursor)


@routes.get("/v1/jobs/{id}/logs", **operation("jobs:read", "not_found", model=list_of(LogLineView, "LogList")))
async def read_log(request: ApiRequest, id: str, limit: Limit = 1000, cursor: Cursor = None) -> Response:
    """Log lines of all attempts in order."""
    after = (0, 0)
    if cursor is not None:
        place = _CURSOR.fullmatch(cursor)
        if place is None or int(place[2]) > 2**31 - 1:
            raise wrong_cursor()
        after = (int(place[1]), int(place[2]))
    call = calls.job_records.read_log(read_job_id(id), request.identity, after=after, limit=limit)
    found, following = await request.call(page_of(call))
    last = from_json(found[-1]) if following is not None or len(found) == limit else None
    return list_response(found, None if last is None else f"{last['token']}-{last['line']}")


@routes.get("/v1/jobs/{id}/explain", **operation("jobs:read", "not_found", model=ExplanationView))
async def explain(request: ApiRequest, id: str) -> Response:
    """What the job waits for (or does, or how it ended), since when, and how to change that."""
    return await request.answer(calls.job_records.explain_job(read_job_id(id), request.identity))


@routes.get("/v1/jobs/{id}/locks", **operation("jobs:read", "not_found", model=list_of(JobLockView, has_pages=False)))
async def list_locks_of_job(request: ApiRequest, id: str) -> Response:
    """What the job holds, and what it waits for, with the holder."""
    return await request.answer_list(calls.job_records.describe_locks(read_job_id(id), request.identity))


@routes.get("/v1/locks", **operation("jobs:read", model=list_of(JobLockView, has_pages=False)))
async def list_locks(request: ApiRequest) -> Response:
    """Every lock, resource lock and key in use, each followed by those who wait for it; the first thousand of each."""
    return await request.answer_list(calls.job_records.describe_locks(viewer=request.identity))
