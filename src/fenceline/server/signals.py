"""Signals to jobs whose handlers wait: sent with a token, or through a one-time URL."""

import secrets
from typing import Annotated, Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from fastapi import Header, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictStr
from pydantic_core import from_json, to_json

from fenceline.context.waits import CALLBACK_SECONDS
from fenceline.database import calls
from fenceline.database.call import text_of
from fenceline.model.secret import hash_token
from fenceline.server.attempts import AttemptId, execute, writes
from fenceline.server.doors import address_key
from fenceline.server.payloads import body_of, read_payload, read_unknown_body
from fenceline.server.problems import Problem
from fenceline.server.routing import PUBLIC, ApiRequest, operation, read_job_id, router, value_response
from fenceline.server.schemas import AT, Body, JobView
from fenceline.server.views import View, examples

routes = router("signals")

MAX_IDEMPOTENCY_KEY = 400


class SignalBody(Body):
    """`payload`: what `ctx.wait_for` returns, any JSON."""

    model_config = examples({"payload": {"approved": True}})

    payload: Any = None


class WaitBody(Body):
    """`step` names the wait among the job's steps. Without `signal` it is a sleep. `seconds`: the longest wait."""

    model_config = examples({"step": "wait:agent-returned", "signal": "agent-returned", "seconds": 3600})

    step: StrictStr
    signal: StrictStr | None = None
    seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None


class WaitView(View):
    """`ended` is null while the wait goes on: end the attempt with status `waiting`, and the job can be claimed again
    once the wait is over.
    """

    model_config = examples({"ended": "signal", "payload": {"approved": True}})

    ended: Annotated[str | None, Field(description="`signal`, `timeout` or `slept`.")]
    payload: Any


class CallbackBody(Body):
    """`hash`: SHA-256, in hexadecimal, of your own secret; without it, a secret is generated."""

    model_config = examples({"signal": "agent-returned", "seconds": 86400})

    signal: StrictStr
    seconds: Annotated[float, Field(ge=1, le=31_622_400)] = CALLBACK_SECONDS
    hash: Annotated[StrictStr, Field(pattern="^[0-9a-f]{64}$")] | None = None


class CallbackView(View):
    """`path`: where to post once, on this server. Null if the secret is yours: then it is `/v1/callbacks/{secret}`."""

    model_config = examples({"expires_at": AT, "path": "/v1/callbacks/5n3x"})

    expires_at: AwareDatetime
    path: str | None


class CallbackPayload(BaseModel):
    """An object, or any other JSON."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"approved": True}]})


IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", max_length=MAX_IDEMPOTENCY_KEY, description="A repeat with the same value counts once."
    ),
]


@routes.post(
    "/v1/jobs/{id}/signals/{name}",
    **operation("jobs:enqueue", "not_found", "wrong_status", status=202, model=JobView),
)
async def signal_job(
    request: ApiRequest,
    id: str,
    name: str,
    body: SignalBody | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Send a signal to an unfinished job. Its handler's wait for that name ends now, or as soon as it begins."""
    job_id, identity = read_job_id(id), request.identity
    if identity.is_bound:
        job = from_json(await request.call(text_of(calls.jobs.describe_job(job_id, identity))))
        if not identity.is_for(job["kind"], job["lane"]):
            raise Problem("forbidden", "this token is limited to certain lanes or kinds, and the job is of another")
    payload = None if body is None or body.payload is None else to_json(body.payload).decode()
    call = calls.jobs.signal_job(
        job_id, name, payload, actor=identity.actor, request_id=_request_id(idempotency_key), viewer=identity
    )
    await request.call(call)
    return await request.answer(calls.jobs.describe_job(job_id, identity), 202)


def _request_id(idempotency_key: str | None) -> UUID:
    return uuid4() if idempotency_key is None else uuid5(NAMESPACE_URL, idempotency_key)


# From runners --------------------------------------------------------------------------------------------------------


@routes.post("/v1/jobs/{id}/waits", **writes(model=WaitView))
async def begin_wait(request: ApiRequest, id: str, body: WaitBody, attempt: AttemptId = None) -> Response:
    """Begin a wait of this attempt, or ask how it ended."""
    return value_response(await execute(request, id, attempt, "begin_wait", **body.model_dump()))


@routes.post("/v1/jobs/{id}/callbacks", **writes(status=201, model=CallbackView))
async def create_callback(request: ApiRequest, id: str, body: CallbackBody, attempt: AttemptId = None) -> Response:
    """Create a URL with which another system can send this job one signal, without a token."""
    secret = secrets.token_urlsafe(32)
    hashed = body.hash or hash_token(secret).hex()
    expires_at = await execute(
        request, id, attempt, "create_callback", signal=body.signal, hash=hashed, seconds=body.seconds
    )
    path = None if body.hash else f"/v1/callbacks/{secret}"
    return value_response({"expires_at": expires_at, "path": path}, 201)


# Without a token -----------------------------------------------------------------------------------------------------


@routes.post(
    "/v1/callbacks/{secret}",
    **operation(
        PUBLIC, "not_found", "timeout", "limited", "busy", "unavailable", status=202,
        answers={202: {"description": "The signal was sent. The answer says nothing about the job."}},
        extra=body_of("CallbackPayload", required=False),
    ),
)  # fmt: skip
async def use_callback(request: ApiRequest, secret: str) -> Response:
    """Send the signal of a one-time URL, with the body as payload.

    An unknown, used or expired URL, or one whose job has ended, is answered 404, and counts against the address
    like a refused token.
    """
    suspicion, address = request.server.suspicion, address_key(request.host)
    suspicion.check(address, None)
    with request.server.trigger_bodies.one(address) as has_place:
        if not has_place:
            raise Problem("busy", "too many requests without a token are under way, in all or from this address")
        body = await read_unknown_body(request)
    payload = read_payload(request.headers.get("content-type", ""), body)[1] if body else None
    if not await request.call(calls.jobs.use_callback(hash_token(secret), payload)):
        suspicion.refused(address, None)
        raise Problem("not_found", "there is no such callback, or it cannot be used any more")
    return Response(status_code=202)
