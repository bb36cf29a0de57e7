"""What a runner writes for an attempt. Every call names the attempt (`Fenceline-Attempt`) and comes from the token
whose runner claimed it; what comes too late changes nothing and is answered 409 `stale_attempt`.
"""

import json
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4, uuid5

from fastapi import Header, Response
from pydantic_core import from_json, to_json

from fenceline.database import context_calls, runner_calls, worker_calls
from fenceline.errors import NotFound, StaleAttempt
from fenceline.server.attempt_schemas import (
    CheckpointBody,
    ChildrenBody,
    ChildrenView,
    EndBody,
    FinishBody,
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
    SnapshotBody,
    SnapshotView,
    StartView,
    StatusBody,
    StepBody,
    StepNamesBody,
)
from fenceline.server.finalizing import finish_one
from fenceline.server.jobs import encode_chosen
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.schemas import JobView

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

#: What a status means to the state machine, where that is not the same word.
_OUTCOMES: dict[tuple[str, bool | None], str] = {("failed", False): "failed_for_good"}


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
        await request.caller.call(runner_calls.runner_attempt(job_id, attempt_id or NO_ATTEMPT, request.identity))
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
    answer = await request.caller.call(context_calls.OPERATIONS[name](job_id, attempt_id, **values))
    if name == "set_progress" and not answer:
        raise StaleAttempt(f"attempt {attempt_id} of job {job} is gone: nothing was changed")
    return answer


def _text(value: Any) -> str | None:
    return None if value is None else to_json(value).decode()


# Start and end -------------------------------------------------------------------------------------------------------


@routes.put("/v1/jobs/{id}/status", **_writes("finalizer_missing", model=JobView))
async def put_status(request: ApiRequest, id: str, body: StatusBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - the contract's name
    """Say that the handler has started, or how it ended. The same end sent again is answered like the first."""
    job_id, attempt_id = await own_attempt(request, id, attempt)
    if body.status == "running":
        ran_seconds = [body.ran_seconds or 0.0]
        stale: list[Any] = await request.caller.call(worker_calls.start_attempts([job_id], [attempt_id], ran_seconds))
        verdict = "stale" if stale else "accepted"
    elif body.status == "crashed":
        verdict = await request.caller.call(worker_calls.crash_attempt(job_id, attempt_id, _error(body.error)))
    else:
        verdict = await finish_one(request, _finish(job_id, attempt_id, body.status, body))
    _check_verdict(verdict, id)
    job = await request.caller.call(runner_calls.read_job(job_id, request.identity))
    if job is None:
        raise NotFound(f"job {id} does not exist")
    return json_response(job)


@routes.post("/v1/jobs/finish", **operation("runners:claim", *_CODES, model=FinishView))
async def finish(request: ApiRequest, body: FinishBody) -> Response:
    """End many attempts at once. Each has a verdict of its own; those that are not accepted have changed nothing."""
    known: list[tuple[int, runner_calls.Finish]] = []
    verdicts = ["not_found"] * len(body.attempts)
    for place, item in enumerate(body.attempts):
        try:
            known.append((place, _finish(read_job_id(item.job), item.attempt_id, item.status, item)))
        except Problem:
            continue
    if known:
        ends = [end for _place, end in known]
        answers = await request.caller.call(runner_calls.finish(request.identity, ends))
        for (place, end), verdict in zip(known, answers, strict=True):
            verdicts[place] = verdict
            if verdict == "finalizer":
                try:
                    verdicts[place] = await finish_one(request, end)
                except Problem as problem:
                    verdicts[place] = problem.code
    answered = [
        {"job": item.job, "attempt_id": str(item.attempt_id), "verdict": verdict}
        for item, verdict in zip(body.attempts, verdicts, strict=True)
    ]
    return json_response(json.dumps({"attempts": answered}))


def _finish(job_id: int, attempt_id: UUID, status: str, body: EndBody) -> runner_calls.Finish:
    return runner_calls.Finish(
        job_id=job_id,
        attempt_id=attempt_id,
        outcome=_OUTCOMES.get((status, body.retry), status),
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
async def get_start(request: ApiRequest, id: str, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """What earlier attempts and other jobs left for this one: checkpoint, finished steps, parents."""
    job_id, _attempt_id = await own_attempt(request, id, attempt)
    return json_response(json.dumps(await request.caller.call(context_calls.attempt_start(job_id))))


@routes.post("/v1/jobs/{id}/snapshot-hash", **_writes(model=SnapshotView))
async def hash_snapshot(request: ApiRequest, id: str, body: SnapshotBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """The hash of a configuration, to be compared with the one that was planned."""
    await own_attempt(request, id, attempt)
    text = to_json(body.snapshot).decode()
    return json_response(json.dumps({"hash": await request.caller.call(context_calls.snapshot_hash(text))}))


# Log and progress ----------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/logs", **_writes(status=204, answers=_NOTHING))
async def post_logs(request: ApiRequest, id: str, body: LogsBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Add lines to the job's log."""
    job_id, attempt_id = await own_attempt(request, id, attempt)
    now = datetime.now(UTC)
    lines = [_line(line, now) for line in body.lines]
    if not await request.caller.call(runner_calls.write_log(job_id, attempt_id, lines, body.offset)):
        raise StaleAttempt(f"attempt {attempt_id} of job {id} is gone: nothing was changed")
    return Response(status_code=204)


def _line(line: LineBody, now: datetime) -> dict[str, Any]:
    ago = line.ago_seconds
    if ago is None:
        ago = 0.0 if line.at is None else min(max((now - line.at).total_seconds(), 0.0), 1e9)
    return {"message": line.message, "level": line.level or "info", "fields": line.fields, "ago_seconds": ago}


@routes.put("/v1/jobs/{id}/progress", **_writes(status=204, answers=_NOTHING))
async def put_progress(request: ApiRequest, id: str, body: ProgressBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Say how far the work is."""
    values = body.model_dump(include={"done", "total", "message"}, exclude_none=True)
    await ask(request, id, attempt, "set_progress", progress=_text({**values, **body.more}))
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/phase", **_writes(status=204, answers=_NOTHING))
async def put_phase(request: ApiRequest, id: str, body: PhaseBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Begin a phase, with empty progress."""
    await ask(request, id, attempt, "set_progress", phase=body.phase, progress="{}")
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/items", **_writes(model=ItemsView))
async def put_items(request: ApiRequest, id: str, body: ItemsBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Move items of the progress from whichever set they are in; how many each set has then."""
    counts = await ask(request, id, attempt, "move_items", to=body.to, items=body.items, why=body.why)
    return json_response(json.dumps(counts))


# Durable work --------------------------------------------------------------------------------------------------------


@routes.put("/v1/jobs/{id}/checkpoint", **_writes(status=204, answers=_NOTHING))
async def put_checkpoint(request: ApiRequest, id: str, body: CheckpointBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Keep the state from which the next attempt goes on."""
    await ask(request, id, attempt, "save_checkpoint", state=to_json(body.state).decode())
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/steps", **_writes(status=204, answers=_NOTHING))
async def list_steps_ahead(request: ApiRequest, id: str, body: StepNamesBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Name the steps to come, so that people see them."""
    await ask(request, id, attempt, "list_steps_ahead", names=body.names)
    return Response(status_code=204)


@routes.put("/v1/jobs/{id}/steps/{name:path}", **_writes(status=204, answers=_NOTHING))
async def put_step(request: ApiRequest, id: str, name: str, body: StepBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Record how a step ended. One that is done stays as it is; with another `args_hash` it is refused."""
    values = {"args_hash": body.args_hash, "result": _text(body.result), "ran_seconds": body.ran_seconds}
    await ask(request, id, attempt, "record_step", name=name, error=_error(body.error), **values)
    return Response(status_code=204)


# Others --------------------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/locks", **_writes(model=LockView))
async def take_lock(request: ApiRequest, id: str, body: LockBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Take a named lock for this attempt, or a place in the line for it: ask again until it is held."""
    holding = [str(owner) for owner in body.holding]
    owner = str(body.owner or uuid5(NO_ATTEMPT, f"{(attempt or '').lower()} {body.namespace}/{body.name}"))
    values = {"namespace": body.namespace, "name": str(body.name), "owner": owner, "holding": holding}
    held = await ask(request, id, attempt, "take_lock", **values)
    return json_response(json.dumps({"held": held, "owner": owner}))


@routes.delete("/v1/jobs/{id}/locks/{owner}", **_writes(status=204, answers=_NOTHING))
async def release_lock(request: ApiRequest, id: str, owner: str, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Give a lock back, or the place in the line."""
    try:
        block = UUID(owner)
    except ValueError as error:
        raise Problem("not_found", f"there is no lock of owner {owner[:40]!r}") from error
    await ask(request, id, attempt, "release_lock", owner=str(block))
    return Response(status_code=204)


@routes.post("/v1/jobs/{id}/children", **_writes(status=201, model=ChildrenView))
async def add_children(request: ApiRequest, id: str, body: ChildrenBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Jobs to be made in the transaction that ends this attempt well; their ids are final."""
    values = {
        "kind": body.kind,
        "args": [to_json(args).decode() for args in body.many or [body.args or {}]],
        "options": to_json({**from_json(encode_chosen(body.chosen_options())), **body.options}).decode(),
        "defaults": _text(body.defaults),
        "request_id": str(body.request_id or uuid4()),
    }
    return json_response(json.dumps({"ids": await ask(request, id, attempt, "add_children", **values)}), 201)


@routes.post("/v1/jobs/{id}/guard", **_writes(model=GuardView))
async def guard_newer(request: ApiRequest, id: str, body: GuardBody, attempt: AttemptId = None) -> Response:  # noqa: A002 - as above
    """Announce that this attempt is about to write a version of a resource."""
    newer = await ask(request, id, attempt, "guard_newer", resource=body.resource, version=str(body.version))
    return json_response(json.dumps({"newer": newer}))
