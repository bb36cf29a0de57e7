"""What a runner writes for an attempt. Every call names the attempt (`Fenceline-Attempt`) and must come from the token
whose runner claimed it. A call that comes too late changes nothing and is answered 409 `stale_attempt`.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any
from uuid import UUID, uuid4, uuid5

from fastapi import Header, Response
from pydantic_core import from_json, to_json

from fenceline.database import calls
from fenceline.database.call import text_of
from fenceline.errors import NotFound, StaleAttempt
from fenceline.model.outcome import Outcome
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.server import attempt_schemas as schemas
from fenceline.server.finalizing import finish_one
from fenceline.server.jobs import bound, encode_chosen
from fenceline.server.problems import Problem, invalid
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router, value_response
from fenceline.server.schemas import JobView, with_role

routes = router("attempts")

#: No attempt has this id.
NO_ATTEMPT = UUID(int=0)

AttemptId = Annotated[
    str | None,
    Header(
        alias="Fenceline-Attempt",
        description="The `attempt_id` of the claim. Always required; a missing job is reported first.",
    ),
]


def writes(*problems: str, status: int = 200, model: Any = None) -> dict[str, Any]:
    """What a route's decorator takes for a write of an attempt."""
    answers = {204: {"description": "Written."}} if status == HTTPStatus.NO_CONTENT else None
    codes = ("not_found", "stale_attempt", *problems)
    return operation("runners:claim", *codes, status=status, model=model, answers=answers)


async def own_attempt(request: ApiRequest, job: str, attempt: str | None) -> tuple[int, UUID]:
    """The attempt, if it belongs to the caller's token. Raises NotFound, StaleAttempt, ForeignAttempt."""
    job_id = read_job_id(job)
    try:
        attempt_id = UUID(attempt or "")
    except ValueError:
        attempt_id = NO_ATTEMPT
    try:
        await request.call(calls.attempts.runner_attempt(job_id, attempt_id, request.identity))
    except StaleAttempt as error:
        if attempt is None:
            raise invalid("Fenceline-Attempt", "every write of an attempt names it") from error
        raise
    return job_id, attempt_id


async def execute(request: ApiRequest, job: str, attempt: str | None, name: str, /, **values: Any) -> Any:
    """Run an operation of the state machine for an attempt; it checks the fence itself."""
    job_id, attempt_id = await own_attempt(request, job, attempt)
    async with _noting(request, job_id, attempt_id, name):
        answer = await request.call(calls.context.OPERATIONS[name](job_id, attempt_id, **values))
        if name == "set_progress" and not answer:
            raise StaleAttempt(f"attempt {attempt_id} of job {job} is gone: nothing was changed")
        return answer


@contextlib.asynccontextmanager
async def _noting(request: ApiRequest, job_id: int, attempt_id: UUID, write: str) -> AsyncIterator[None]:
    """Record a refused write in the job's timeline. It changes nothing else."""
    try:
        yield
    except StaleAttempt:
        await _note_refused(request, [job_id], [attempt_id], write)
        raise


async def _note_refused(request: ApiRequest, job_ids: list[int], attempt_ids: list[UUID], write: str) -> None:
    if job_ids:
        await request.call(calls.attempts.note_refused_writes(job_ids, attempt_ids, write))


def _text(value: Any) -> str | None:
    return None if value is None else to_json(value).decode()


# Start and end -------------------------------------------------------------------------------------------------------


@routes.put("/v1/jobs/{id}/status", **writes("finalizer_missing", model=JobView))
async def put_status(request: ApiRequest, id: str, body: schemas.StatusBody, attempt: AttemptId = None) -> Response:
    """Report that the handler has started, or how it ended. A repeated end is answered like the first."""
    job_id, attempt_id = await own_attempt(request, id, attempt)
    match body.status:
        case "running":
            call = calls.attempts.start_attempts([job_id], [attempt_id], [body.ran_seconds or 0.0])
            verdict = "stale" if await request.call(call) else "accepted"
        case "crashed":
            verdict = await request.call(calls.attempts.crash_attempt(job_id, attempt_id, _error(body.error)))
        case status:
            verdict = await finish_one(request, _ending(job_id, attempt_id, status, body))
    async with _noting(request, job_id, attempt_id, "start" if body.status == "running" else "finish"):
        _check_verdict(verdict, id)
    job = await request.call(text_of(calls.jobs.describe_job(job_id, tenant=request.identity.reach)))
    if job is None:
        raise NotFound(f"job {id} does not exist")
    return json_response(job)


@routes.post("/v1/jobs/finish", **writes(model=schemas.FinishView))
async def finish(request: ApiRequest, body: schemas.FinishBody) -> Response:
    """End many attempts at once. Each gets its own verdict; those not accepted have changed nothing."""
    endings = [_ending(_job_id(item), item.attempt_id, item.status, item) for item in body.attempts]
    call = calls.attempts.finish_as_runner(request.identity, endings)
    verdicts = await request.call(call) if endings else []
    for place, verdict in enumerate(verdicts):
        if verdict == "finalizer":
            try:
                verdicts[place] = await finish_one(request, endings[place])
            except Problem as problem:
                verdicts[place] = problem.code
    late = [ending for ending, verdict in zip(endings, verdicts, strict=True) if verdict == "stale"]
    await _note_refused(request, [each.job_id for each in late], [each.attempt_id for each in late], "finish")
    failed = [end for end, verdict in zip(endings, verdicts, strict=True) if _is_failure(end, verdict)]
    return _answer(body.attempts, verdicts, await _what_follows(request, failed))


def _is_failure(end: calls.attempts.RunnerEnding, verdict: str) -> bool:
    return end.outcome.is_failure and verdict in {"accepted", "already"}


async def _what_follows(
    request: ApiRequest, failed: Sequence[calls.attempts.RunnerEnding]
) -> dict[UUID, dict[str, Any]]:
    """What happens next with jobs that failed, by attempt: for the runner's log."""
    if not failed:
        return {}
    call = calls.attempts.attempt_ends([end.job_id for end in failed], [end.attempt_id for end in failed])
    return {
        end.attempt_id: {"final": end.is_final, "asked": end.asked, "next_seconds": end.next_seconds}
        for end in await request.call(call)
    }


@routes.post("/v1/jobs/start", **writes(model=schemas.FinishView))
async def start(request: ApiRequest, body: schemas.StartBody) -> Response:
    """Report that the handlers of many attempts have started."""
    ran_seconds = [item.ran_seconds or 0.0 for item in body.attempts]
    call = calls.attempts.start_as_runner(request.identity, *_ids(body.attempts), ran_seconds)
    return _answer(body.attempts, await request.call(call) if body.attempts else [])


@routes.post("/v1/jobs/report", **writes(model=schemas.FinishView))
async def report(request: ApiRequest, body: schemas.ReportBody) -> Response:
    """Add log lines to many attempts at once, and report their progress."""
    items, now = body.attempts, datetime.now(UTC)
    call = calls.attempts.report_as_runner(
        request.identity,
        *_ids(items),
        lines=[[_line(line, now) for line in item.lines] or None for item in items],
        progress=[item.progress for item in items],
        offsets=[item.offset for item in items],
    )
    verdicts = await request.call(call) if items else []
    late = [item for item, verdict in zip(items, verdicts, strict=True) if verdict == "stale"]
    await _note_refused(request, *_ids(late), "log")
    return _answer(items, verdicts)


def _job_id(item: schemas.AttemptItem) -> int:
    """A malformed id is treated like that of a missing job, which 0 is."""
    try:
        return parse_id(item.job)
    except InvalidId:
        return 0


def _ids(items: Sequence[schemas.AttemptItem]) -> tuple[list[int], list[UUID]]:
    return [_job_id(item) for item in items], [item.attempt_id for item in items]


def _answer(
    items: Sequence[schemas.AttemptItem],
    verdicts: list[str],
    follows: Mapping[UUID, Mapping[str, Any]] = MappingProxyType({}),
) -> Response:
    answered = [
        {"job": item.job, "attempt_id": str(item.attempt_id), "verdict": verdict, **follows.get(item.attempt_id, {})}
        for item, verdict in zip(items, verdicts, strict=True)
    ]
    return value_response({"attempts": answered})


def _ending(
    job_id: int, attempt_id: UUID, status: schemas.EndedStatus, body: schemas.EndingBody
) -> calls.attempts.RunnerEnding:
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


def _error(error: dict[str, Any] | str | None) -> str | None:
    return _text({"code": "error", "message": error} if isinstance(error, str) else error)


def _check_verdict(verdict: str, job: str) -> None:
    match verdict:
        case "stale":
            raise StaleAttempt(f"the attempt of job {job} is gone, or has ended in another way: nothing was changed")
        case "not_found":
            raise NotFound(f"job {job} does not exist")
        case "forbidden":
            raise Problem("forbidden", f"the attempt of job {job} belongs to a runner of another token")


@routes.get("/v1/jobs/{id}/start", **writes(model=schemas.StartView))
async def get_start(request: ApiRequest, id: str, attempt: AttemptId = None) -> Response:
    """What earlier attempts and other jobs left for this one: checkpoint, finished steps, parents."""
    job_id, _attempt_id = await own_attempt(request, id, attempt)
    return await request.answer(calls.context.attempt_start(job_id))


@routes.post("/v1/jobs/{id}/snapshot-hash", **writes(model=schemas.SnapshotView))
async def hash_snapshot(
    request: ApiRequest, id: str, body: schemas.SnapshotBody, attempt: AttemptId = None
) -> Response:
    """The hash of a configuration, to compare with the planned one."""
    await own_attempt(request, id, attempt)
    text = to_json(body.snapshot).decode()
    return value_response({"hash": await request.call(calls.context.snapshot_hash(text))})


# Log and progress ----------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/logs", **writes(status=204))
async def post_logs(request: ApiRequest, id: str, body: schemas.LogsBody, attempt: AttemptId = None) -> None:
    """Add lines to the job's log."""
    job_id, attempt_id = await own_attempt(request, id, attempt)
    now = datetime.now(UTC)
    lines = [_line(line, now) for line in body.lines]
    async with _noting(request, job_id, attempt_id, "log"):
        if not await request.call(calls.attempts.write_log(job_id, attempt_id, lines, body.offset)):
            raise StaleAttempt(f"attempt {attempt_id} of job {id} is gone: nothing was changed")


def _line(line: schemas.LineBody, now: datetime) -> dict[str, Any]:
    ago = line.ago_seconds
    if ago is None:
        ago = 0.0 if line.at is None else min(max((now - line.at).total_seconds(), 0.0), 1e9)
    return {"message": line.message, "level": line.level or "info", "fields": line.fields, "ago_seconds": ago}


@routes.put("/v1/jobs/{id}/progress", **writes(status=204))
async def put_progress(request: ApiRequest, id: str, body: schemas.ProgressBody, attempt: AttemptId = None) -> None:
    """Report progress."""
    values = body.model_dump(include={"done", "total", "message"}, exclude_none=True)
    await execute(request, id, attempt, "set_progress", progress=_text({**values, **body.more}))


@routes.put("/v1/jobs/{id}/phase", **writes(status=204))
async def put_phase(request: ApiRequest, id: str, body: schemas.PhaseBody, attempt: AttemptId = None) -> None:
    """Begin a phase, with empty progress."""
    await execute(request, id, attempt, "set_progress", phase=body.phase, progress="{}")


@routes.put("/v1/jobs/{id}/items", **writes(model=schemas.ItemsView))
async def put_items(request: ApiRequest, id: str, body: schemas.ItemsBody, attempt: AttemptId = None) -> Response:
    """Move items of the progress to another set; the answer counts each set's items."""
    counts = await execute(request, id, attempt, "move_items", to=body.to, items=body.items, why=body.why)
    return value_response(counts)


# Durable work --------------------------------------------------------------------------------------------------------


@routes.put("/v1/jobs/{id}/checkpoint", **writes(status=204))
async def put_checkpoint(request: ApiRequest, id: str, body: schemas.CheckpointBody, attempt: AttemptId = None) -> None:
    """Save the state from which the next attempt resumes."""
    await execute(request, id, attempt, "save_checkpoint", state=to_json(body.state).decode())


@routes.put("/v1/jobs/{id}/steps", **writes(status=204))
async def list_steps_ahead(
    request: ApiRequest, id: str, body: schemas.StepNamesBody, attempt: AttemptId = None
) -> None:
    """Announce the steps to come, so that people can see them."""
    await execute(request, id, attempt, "list_steps_ahead", names=body.names)


@routes.put("/v1/jobs/{id}/steps/{name:path}", **writes(status=204))
async def put_step(request: ApiRequest, id: str, name: str, body: schemas.StepBody, attempt: AttemptId = None) -> None:
    """Record how a step ended. A step that is done stays as it is; another `args_hash` is refused."""
    values = {"args_hash": body.args_hash, "result": _text(body.result), "ran_seconds": body.ran_seconds}
    await execute(request, id, attempt, "record_step", name=name, error=_error(body.error), **values)


# Others --------------------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/locks", **writes(model=schemas.LockView))
async def take_lock(request: ApiRequest, id: str, body: schemas.LockBody, attempt: AttemptId = None) -> Response:
    """Take a named lock for this attempt, or a place in its queue; repeat until it is held."""
    holding = [str(owner) for owner in body.holding]
    owner = str(body.owner or uuid5(NO_ATTEMPT, f"{(attempt or '').lower()} {body.namespace}/{body.name}"))
    values = {"namespace": body.namespace, "name": str(body.name), "owner": owner, "holding": holding}
    held = await execute(request, id, attempt, "take_lock", **values)
    return value_response({"held": held, "owner": owner})


@routes.delete("/v1/jobs/{id}/locks/{owner}", **writes(status=204))
async def release_lock(request: ApiRequest, id: str, owner: str, attempt: AttemptId = None) -> None:
    """Release a lock, or leave its queue."""
    try:
        block = UUID(owner)
    except ValueError as error:
        raise Problem("not_found", f"there is no lock with owner {owner[:40]!r}") from error
    await execute(request, id, attempt, "release_lock", owner=str(block))


@routes.post("/v1/jobs/{id}/children", **writes(status=201, model=schemas.ChildrenView))
async def add_children(request: ApiRequest, id: str, body: schemas.ChildrenBody, attempt: AttemptId = None) -> Response:
    """Enqueue jobs in the transaction in which this attempt succeeds; their ids are final."""
    options = {**from_json(encode_chosen(body.chosen_options())), **body.options}
    values = {
        "kind": body.kind,
        "args": [to_json(args).decode() for args in body.many or [body.args or {}]],
        "options": bound(to_json(with_role(options, request.identity)).decode(), request.identity),
        "defaults": _text(await _without_new_lane(request, body.defaults)),
        "request_id": str(body.request_id or uuid4()),
    }
    return value_response({"ids": await execute(request, id, attempt, "add_children", **values)}, 201)


async def _without_new_lane(request: ApiRequest, defaults: dict[str, Any] | None) -> dict[str, Any] | None:
    """The decorator's defaults, without a lane that does not exist: runners create no lanes, which are the fleet's."""
    if defaults is None or defaults.get("lane") is None:
        return defaults
    known = await request.call(calls.lanes.describe_lanes(str(defaults["lane"])))
    return defaults if known else {name: value for name, value in defaults.items() if name != "lane"}


@routes.post("/v1/jobs/{id}/guard", **writes(model=schemas.GuardView))
async def guard_newer(request: ApiRequest, id: str, body: schemas.GuardBody, attempt: AttemptId = None) -> Response:
    """Announce that this attempt is about to write a version of a resource."""
    newer = await execute(request, id, attempt, "guard_newer", resource=body.resource, version=str(body.version))
    return value_response({"newer": newer})
