"""What a runner writes for an attempt. Every call names the attempt (`Fenceline-Attempt`) and comes from the token
whose runner claimed it; what comes too late changes nothing and is answered 409 `stale_attempt`.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, TypeVar
from uuid import UUID, uuid4, uuid5

from fastapi import Header, Response
from pydantic_core import from_json, to_json

from fenceline.database import calls
from fenceline.database.call import text_of
from fenceline.errors import NotFound, StaleAttempt
from fenceline.model.outcome import Outcome
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.server.attempt_schemas import (
    CheckpointBody,
    ChildrenBody,
    ChildrenView,
    EndedStatus,
    EndingBody,
    FinishBody,
    FinishItem,
    FinishView,
    GuardBody,
    GuardView,
    ItemsBody,
    ItemsView,
    LineBody,
    LockBody,
    LockView,
    LogsBody,
    PhaseBody,
    ProgressBody,
    ReportBody,
    ReportItem,
    SnapshotBody,
    SnapshotView,
    StartBody,
    StartItem,
    StartView,
    StatusBody,
    StepBody,
    StepNamesBody,
)
from fenceline.server.finalizing import finish_one
from fenceline.server.jobs import bound, encode_chosen
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import JobView, with_role

routes = router("attempts")

_CODES = ("not_found", "stale_attempt", "too_large", "unsupported_media_type", "invalid")
#: No attempt has this id.
NO_ATTEMPT = UUID(int=0)
_NOTHING: dict[int, dict[str, Any]] = {204: {"description": "Written."}}

AttemptId = Annotated[
    str | None,
    Header(
        alias="Fenceline-Attempt",
        description="The `attempt_id` of the claim. Always needed; a job that is missing is told first.",
    ),
]


def _writes(*more: str, **options: Any) -> dict[str, Any]:
    return operation("runners:claim", *_CODES, *more, **options)


async def own_attempt(request: ApiRequest, job: str, attempt: str | None) -> tuple[int, UUID]:
    """The attempt, if it is one of the token's. Raises NotFound, StaleAttempt, ForeignAttempt."""
    job_id = read_job_id(job)
    try:
        attempt_id = None if attempt is None else UUID(attempt)
    except ValueError:
        attempt_id = NO_ATTEMPT
    try:
        await request.database.call(calls.attempts.runner_attempt(job_id, attempt_id or NO_ATTEMPT, request.identity))
    except StaleAttempt as error:
        if attempt is None:
            message = "every write of an attempt names it"
            problem = {"field": "Fenceline-Attempt", "message": message}
            raise Problem("invalid", f"Fenceline-Attempt: {message}", errors=[problem]) from error
        raise
    return job_id, attempt_id or NO_ATTEMPT


async def ask(request: ApiRequest, job: str, attempt: str | None, name: str, /, **values: Any) -> Any:
    """Carry out an operation of the state machine for an attempt. It fences by itself."""
    job_id, attempt_id = await own_attempt(request, job, attempt)
    async with _noting(request, job_id, attempt_id, name):
        answer = await request.database.call(calls.context.OPERATIONS[name](job_id, attempt_id, **values))
        if name == "set_progress" and not answer:
            raise StaleAttempt(f"attempt {attempt_id} of job {job} is gone: nothing was changed")
        return answer


@contextlib.asynccontextmanager
async def _noting(request: ApiRequest, job_id: int, attempt_id: UUID, write: str) -> AsyncIterator[None]:
    """Note a write that was refused for the job's timeline: it changes nothing else."""
    try:
        yield
    except StaleAttempt:
        await _note_refused(request, [job_id], [attempt_id], write)
        raise


async def _note_refused(request: ApiRequest, job_ids: list[int], attempt_ids: list[UUID], write: str) -> None:
    if job_ids:
        await request.database.call(calls.attempts.note_refused_writes(job_ids, attempt_ids, write))


def _text(value: Any) -> str | None:
    return None if value is None else to_json(value).decode()


# Start and end -------------------------------------------------------------------------------------------------------


@routes.put("/v1/jobs/{id}/status", **_writes("finalizer_missing", model=JobView))
async def put_status(request: ApiRequest, id: str, body: StatusBody, attempt: AttemptId = None) -> Response:
    """Report that the handler has started, or how it ended. The same end sent again is answered like the first."""
    job_id, attempt_id = await own_attempt(request, id, attempt)
    match body.status:
        case "running":
            call = calls.attempts.start_attempts([job_id], [attempt_id], [body.ran_seconds or 0.0])
            verdict = "stale" if await request.database.call(call) else "accepted"
        case "crashed":
            verdict = await request.database.call(calls.attempts.crash_attempt(job_id, attempt_id, _error(body.error)))
        case status:
            verdict = await finish_one(request, _ending(job_id, attempt_id, status, body))
    async with _noting(request, job_id, attempt_id, "start" if body.status == "running" else "finish"):
        _check_verdict(verdict, id)
    job = await request.database.call(text_of(calls.jobs.describe_job(job_id, tenant=request.identity.reach)))
    if job is None:
        raise NotFound(f"job {id} does not exist")
    return json_response(job)


@routes.post("/v1/jobs/finish", **operation("runners:claim", *_CODES, model=FinishView))
async def finish(request: ApiRequest, body: FinishBody) -> Response:
    """End many attempts at once. Each gets its own verdict; those not accepted have changed nothing."""
    known = _known(body.attempts)
    endings = [_ending(job_id, item.attempt_id, item.status, item) for _place, job_id, item in known]
    call = calls.attempts.finish_as_runner(request.identity, endings)
    verdicts = await request.database.call(call) if endings else []
    for place, verdict in enumerate(verdicts):
        if verdict == "finalizer":
            try:
                verdicts[place] = await finish_one(request, endings[place])
            except Problem as problem:
                verdicts[place] = problem.code
    late = [ending for ending, verdict in zip(endings, verdicts, strict=True) if verdict == "stale"]
    await _note_refused(request, [each.job_id for each in late], [each.attempt_id for each in late], "finish")
    failed = [end for end, verdict in zip(endings, verdicts, strict=True) if _is_failure(end, verdict)]
    return _answer(body.attempts, known, verdicts, await _what_follows(request, failed))


def _is_failure(end: calls.attempts.RunnerEnding, verdict: str) -> bool:
    return end.outcome in (Outcome.FAILED, Outcome.FAILED_FOR_GOOD, Outcome.REFUSED) and verdict in (
        "accepted",
        "already",
    )


async def _what_follows(
    request: ApiRequest, failed: Sequence[calls.attempts.RunnerEnding]
) -> dict[UUID, dict[str, Any]]:
    """What became of jobs that failed, by attempt: for the log of whoever ran them."""
    if not failed:
        return {}
    call = calls.attempts.attempt_ends([end.job_id for end in failed], [end.attempt_id for end in failed])
    return {
        end.attempt_id: {"final": end.is_final, "asked": end.asked, "next_seconds": end.next_seconds}
        for end in await request.database.call(call)
    }


@routes.post("/v1/jobs/start", **operation("runners:claim", *_CODES, model=FinishView))
async def start(request: ApiRequest, body: StartBody) -> Response:
    """Report that the handlers of many attempts have started."""
    known = _known(body.attempts)
    ran_seconds = [item.ran_seconds or 0.0 for _place, _job_id, item in known]
    call = calls.attempts.start_as_runner(request.identity, *_ids(known), ran_seconds)
    return _answer(body.attempts, known, await request.database.call(call) if known else [])


@routes.post("/v1/jobs/report", **operation("runners:claim", *_CODES, model=FinishView))
async def report(request: ApiRequest, body: ReportBody) -> Response:
    """Add log lines to many attempts at once, and report their progress."""
    known, now = _known(body.attempts), datetime.now(UTC)
    call = calls.attempts.report_as_runner(
        request.identity,
        *_ids(known),
        lines=[[_line(line, now) for line in item.lines] or None for _place, _job_id, item in known],
        progress=[item.progress for _place, _job_id, item in known],
        offsets=[item.offset for _place, _job_id, item in known],
    )
    verdicts = await request.database.call(call) if known else []
    late = [each for each, verdict in zip(known, verdicts, strict=True) if verdict == "stale"]
    await _note_refused(request, *_ids(late), "log")
    return _answer(body.attempts, known, verdicts)


Item = TypeVar("Item", FinishItem, StartItem, ReportItem)


def _known(items: Sequence[Item]) -> list[tuple[int, int, Item]]:
    """With their places and their jobs' ids; a malformed id is answered like a missing one."""
    job_ids = [_job_id(item.job) for item in items]
    return [
        (place, job_id, item)
        for place, (job_id, item) in enumerate(zip(job_ids, items, strict=True))
        if job_id is not None
    ]


def _job_id(text: str) -> int | None:
    try:
        return parse_id(text)
    except InvalidId:
        return None


def _ids(known: Sequence[tuple[int, int, Item]]) -> tuple[list[int], list[UUID]]:
    return [job_id for _place, job_id, _item in known], [item.attempt_id for _place, _job_id, item in known]


def _answer(
    items: Sequence[Item],
    known: Sequence[tuple[int, int, Item]],
    verdicts: list[str],
    follows: Mapping[UUID, Mapping[str, Any]] = MappingProxyType({}),
) -> Response:
    by_place = {place: verdict for (place, _job_id, _item), verdict in zip(known, verdicts, strict=True)}
    answered = [
        {
            "job": item.job,
            "attempt_id": str(item.attempt_id),
            "verdict": by_place.get(place, "not_found"),
            **follows.get(item.attempt_id, {}),
        }
        for place, item in enumerate(items)
    ]
    return json_response(json.dumps({"attempts": answered}))


def _ending(job_id: int, attempt_id: UUID, status: EndedStatus, body: EndingBody) -> calls.attempts.RunnerEnding:
    outcome = Outcome(status)
    if outcome is Outcome.FAILED and body.retry is False:
        outcome = Outcome.FAILED_FOR_GOOD
    return calls.attempts.RunnerEnding(
        job_id=job_id,
        attempt_id=attempt_id,
        outcome=outcome,
        result=_text(body.result),
        error=_error(body.error),
        errors=_text(body.errors),
        delay_seconds=body.delay_seconds,
        ran_seconds=body.ran_seconds,
        metadata=_text(body.metadata),
    )


def _error(said: dict[str, Any] | str | None) -> str | None:
    return _text({"code": "error", "message": said} if isinstance(said, str) else said)


def _check_verdict(verdict: str, job: str) -> None:
    match verdict:
        case "stale":
            raise StaleAttempt(f"the attempt of job {job} is gone, or has ended in another way: nothing was changed")
        case "not_found":
            raise NotFound(f"job {job} does not exist")
        case "forbidden":
            raise Problem("forbidden", f"the attempt of job {job} belongs to a runner of another token")


@routes.get("/v1/jobs/{id}/start", **_writes(model=StartView))
async def get_start(request: ApiRequest, id: str, attempt: AttemptId = None) -> Response:
    """What earlier attempts and other jobs left for this one: checkpoint, finished steps, parents."""
    job_id, _attempt_id = await own_attempt(request, id, attempt)
    return json_response(json.dumps(await request.database.call(calls.context.attempt_start(job_id))))


@routes.post("/v1/jobs/{id}/snapshot-hash", **_writes(model=SnapshotView))
async def hash_snapshot(request: ApiRequest, id: str, body: SnapshotBody, attempt: AttemptId = None) -> Response:
    """The hash of a configuration, to be compared with the one that was planned."""
    await own_attempt(request, id, attempt)
    text = to_json(body.snapshot).decode()
    return json_response(json.dumps({"hash": await request.database.call(calls.context.snapshot_hash(text))}))


# Log and progress ----------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/logs", **_writes(status=204, answers=_NOTHING))
async def post_logs(request: ApiRequest, id: str, body: LogsBody, attempt: AttemptId = None) -> Response:
    """Add lines to the job's log."""
    job_id, attempt_id = await own_attempt(request, id, attempt)
    now = datetime.now(UTC)
    lines = [_line(line, now) for line in body.lines]
    async with _noting(request, job_id, attempt_id, "log"):
        if not await request.database.call(calls.attempts.write_log(job_id, attempt_id, lines, body.offset)):
            raise StaleAttempt(f"attempt {attempt_id} of job {id} is gone: nothing was changed")
    return Response(status_code=204)


def _line(line: LineBody, now: datetime) -> dict[str, Any]:
    ago = line.ago_seconds
    if ago is None:
        ago = 0.0 if line.at is None else min(max((now - line.at).total_seconds(), 0.0), 1e9)
    return {"message": line.message, "level": line.level or "info", "fields": line.fields, "ago_seconds": ago}


@routes.put("/v1/jobs/{id}/progress", **_writes(status=204, answers=_NOTHING))
async def put_progress(request: ApiRequest, id: str, body: ProgressBody, attempt: AttemptId = None) -> Response:
    """Report progress."""
    values = body.model_dump(include={"done", "total", "message"}, exclude_none=True)
    await ask(request, id, attempt, "set_progress", progress=_text({**values, **body.more}))
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/phase", **_writes(status=204, answers=_NOTHING))
async def put_phase(request: ApiRequest, id: str, body: PhaseBody, attempt: AttemptId = None) -> Response:
    """Begin a phase, with empty progress."""
    await ask(request, id, attempt, "set_progress", phase=body.phase, progress="{}")
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/items", **_writes(model=ItemsView))
async def put_items(request: ApiRequest, id: str, body: ItemsBody, attempt: AttemptId = None) -> Response:
    """Move items of the progress from whichever set they are in; how many each set has then."""
    counts = await ask(request, id, attempt, "move_items", to=body.to, items=body.items, why=body.why)
    return json_response(json.dumps(counts))


# Durable work --------------------------------------------------------------------------------------------------------


@routes.put("/v1/jobs/{id}/checkpoint", **_writes(status=204, answers=_NOTHING))
async def put_checkpoint(request: ApiRequest, id: str, body: CheckpointBody, attempt: AttemptId = None) -> Response:
    """Save the state from which the next attempt resumes."""
    await ask(request, id, attempt, "save_checkpoint", state=to_json(body.state).decode())
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/steps", **_writes(status=204, answers=_NOTHING))
async def list_steps_ahead(request: ApiRequest, id: str, body: StepNamesBody, attempt: AttemptId = None) -> Response:
    """Announce the steps to come, for people to see."""
    await ask(request, id, attempt, "list_steps_ahead", names=body.names)
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/steps/{name:path}", **_writes(status=204, answers=_NOTHING))
async def put_step(request: ApiRequest, id: str, name: str, body: StepBody, attempt: AttemptId = None) -> Response:
    """Record how a step ended. One that is done stays as it is; with another `args_hash` it is refused."""
    values = {"args_hash": body.args_hash, "result": _text(body.result), "ran_seconds": body.ran_seconds}
    await ask(request, id, attempt, "record_step", name=name, error=_error(body.error), **values)
    return Response(status_code=204)


# Others --------------------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/locks", **_writes(model=LockView))
async def take_lock(request: ApiRequest, id: str, body: LockBody, attempt: AttemptId = None) -> Response:
    """Take a named lock for this attempt, or a place in the line for it: ask again until it is held."""
    holding = [str(owner) for owner in body.holding]
    owner = str(body.owner or uuid5(NO_ATTEMPT, f"{(attempt or '').lower()} {body.namespace}/{body.name}"))
    values = {"namespace": body.namespace, "name": str(body.name), "owner": owner, "holding": holding}
    held = await ask(request, id, attempt, "take_lock", **values)
    return json_response(json.dumps({"held": held, "owner": owner}))


@routes.delete("/v1/jobs/{id}/locks/{owner}", **_writes(status=204, answers=_NOTHING))
async def release_lock(request: ApiRequest, id: str, owner: str, attempt: AttemptId = None) -> Response:
    """Release a lock, or leave the line for it."""
    try:
        block = UUID(owner)
    except ValueError as error:
        raise Problem("not_found", f"there is no lock with owner {owner[:40]!r}") from error
    await ask(request, id, attempt, "release_lock", owner=str(block))
    return Response(status_code=204)


@routes.post("/v1/jobs/{id}/children", **_writes(status=201, model=ChildrenView))
async def add_children(request: ApiRequest, id: str, body: ChildrenBody, attempt: AttemptId = None) -> Response:
    """Enqueue jobs in the transaction in which this attempt succeeds; their ids are final."""
    options = {**from_json(encode_chosen(body.chosen_options())), **body.options}
    values = {
        "kind": body.kind,
        "args": [to_json(args).decode() for args in body.many or [body.args or {}]],
        "options": bound(to_json(with_role(options, request.identity)).decode(), request.identity),
        "defaults": _text(await _without_new_lane(request, body.defaults)),
        "request_id": str(body.request_id or uuid4()),
    }
    return json_response(json.dumps({"ids": await ask(request, id, attempt, "add_children", **values)}), 201)


async def _without_new_lane(request: ApiRequest, defaults: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a decorator says, without a lane that is not there: lanes are the fleet's, and no runner makes one."""
    lane = None if defaults is None else defaults.get("lane")
    if defaults is None or lane is None:
        return defaults
    known = await request.database.call(calls.lanes.describe_lanes(str(lane)))
    return defaults if known else {name: value for name, value in defaults.items() if name != "lane"}


@routes.post("/v1/jobs/{id}/guard", **_writes(model=GuardView))
async def guard_newer(request: ApiRequest, id: str, body: GuardBody, attempt: AttemptId = None) -> Response:
    """Announce that this attempt is about to write a version of a resource."""
    newer = await ask(request, id, attempt, "guard_newer", resource=body.resource, version=str(body.version))
    return json_response(json.dumps({"newer": newer}))
