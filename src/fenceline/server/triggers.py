"""Incoming webhooks: a signed request enqueues a job.

What is signed is in `fenceline.model.signature`. A request that does not fit any trigger of that name is answered like
one to a trigger that does not exist.
"""

import json
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, StrictInt, StrictStr

from fenceline.database import webhook_calls
from fenceline.database.webhook_calls import TriggerKey
from fenceline.model.identity import Identity
from fenceline.model.signature import (
    SIGNATURE,
    TIMESTAMP,
    fits,
    new_secret,
    read_signature,
    read_timestamp,
)
from fenceline.server.jobs import LOCATION, encode_args
from fenceline.server.problems import Problem
from fenceline.server.routing import PUBLIC, ApiRequest, json_response, list_response, operation, router
from fenceline.server.schemas import AT, Body, JobOptionsBody, JobView, View

routes = router("triggers")

_WITH_BODY = ("too_large", "unsupported_media_type", "invalid")
_TRIGGER: dict[str, JsonValue] = {
    "name": "deploy", "kind": "deploy", "tenant": "default", "args": {"stage": "test"},
    "map": {"commit": "$.head_commit.id"}, "options": {"priority": 10}, "idempotency_header": "x-delivery-id",
    "dedupe_header": None, "window_seconds": 300, "enabled": True, "created_at": AT, "created_by": "ann",
    "fired_at": None,
}  # fmt: skip
Secret = Annotated[
    StrictStr, Field(min_length=16, max_length=200, description="Yours, or left out: then one is made for you.")
]


class TriggerBody(Body):
    """`args` are those of every job; `map` names arguments and where in the body they stand (SQL/JSON path); without it
    the body itself is the args. The headers name what the sender repeats when it sends a delivery again.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "deploy", "kind": "deploy", "args": {"stage": "test"},
                    "map": {"commit": "$.head_commit.id"}, "idempotency_header": "X-Delivery-Id",
                }
            ]
        }
    )  # fmt: skip

    name: StrictStr
    kind: StrictStr
    args: dict[str, Any] | None = None
    map: dict[str, StrictStr] | None = None
    options: JobOptionsBody | None = None
    idempotency_header: StrictStr | None = None
    dedupe_header: StrictStr | None = None
    window_seconds: StrictInt | None = None
    secret: Secret | None = None


class TriggerView(View):
    model_config = ConfigDict(title="Trigger", json_schema_extra={"examples": [_TRIGGER]})

    name: str
    tenant: str
    kind: str
    args: dict[str, Any]
    map: dict[str, str] | None
    options: dict[str, Any]
    idempotency_header: str | None
    dedupe_header: str | None
    window_seconds: int
    enabled: bool
    created_at: AwareDatetime
    created_by: str | None
    fired_at: AwareDatetime | None


class NewTriggerView(TriggerView):
    model_config = ConfigDict(title="NewTrigger", json_schema_extra={"examples": []})

    secret: Annotated[str, Field(description="What requests are signed with. It is shown here and never again.")]


class TriggerList(View):
    items: list[TriggerView]
    next_cursor: None


class TriggerPayload(BaseModel):
    """Whatever the sender has to say: a JSON object, or anything the trigger's map can read."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"head_commit": {"id": "4f1c"}}]})


@routes.get("/v1/triggers", **operation("schedules:manage", model=TriggerList))
async def list_triggers(request: ApiRequest) -> Response:
    """Incoming webhooks in reach, by name; never their secrets."""
    found = await request.caller.call(webhook_calls.triggers(request.identity.reach))
    return list_response(found)


@routes.post("/v1/triggers", **operation("schedules:manage", "conflict", *_WITH_BODY, status=201, model=NewTriggerView))
async def create_trigger(request: ApiRequest, body: TriggerBody) -> Response:
    """Make an incoming webhook. The answer is the only place where its secret ever stands."""
    settings = body.model_dump(exclude_unset=True, exclude={"name", "secret"})
    secret = body.secret or new_secret()
    made: str = await request.caller.call(webhook_calls.create_trigger(body.name, settings, secret, request.identity))
    return json_response(
        json.dumps({**json.loads(made), "secret": secret}), 201, {"Location": f"/v1/triggers/{body.name}"}
    )


@routes.get("/v1/triggers/{name}", **operation("schedules:manage", "not_found", "invalid", model=TriggerView))
async def get_trigger(request: ApiRequest, name: str, tenant: Annotated[str | None, Query()] = None) -> Response:
    """One incoming webhook; of another tenant with `tenant`, where that is in reach."""
    found = await request.caller.call(webhook_calls.triggers(_tenant(request.identity, name, tenant), name))
    if not found:
        raise _no_trigger(name)
    return json_response(found[0])


@routes.delete("/v1/triggers/{name}", **operation("schedules:manage", "not_found", "invalid", status=204))
async def delete_trigger(request: ApiRequest, name: str, tenant: Annotated[str | None, Query()] = None) -> Response:
    """Delete an incoming webhook; requests to it are refused from now on."""
    wanted = _tenant(request.identity, name, tenant)
    await request.caller.call(webhook_calls.delete_trigger(name, wanted, request.identity))
    return Response(status_code=204)


@routes.post(
    "/v1/triggers/{name}",
    **operation(
        PUBLIC, "unauthenticated", "conflict", "not_found", "resource_locked", "limited", "draining", "unavailable",
        *_WITH_BODY,
        status=202, model=JobView,
        answers={
            200: {"description": "The job that was there already.", "model": JobView, "headers": LOCATION},
            202: {"description": "Enqueued.", "headers": LOCATION},
        },
        extra={
            "parameters": [
                {
                    "name": TIMESTAMP, "in": "header", "required": True, "schema": {"type": "string"},
                    "description": "When it was signed, in seconds since 1970.",
                },
                {
                    "name": SIGNATURE, "in": "header", "required": True, "schema": {"type": "string"},
                    "description": "`v1=` and the HMAC-SHA256, in hex, of timestamp, dot and body.",
                },
            ],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TriggerPayload"}}},
            },
        },
    ),
)  # fmt: skip
async def fire_trigger(request: ApiRequest, name: str) -> Response:
    """Enqueue the job of an incoming webhook. No token: the request is signed with the trigger's secret, once."""
    body = await request.body()
    trigger, signature = await _check(request, name, body)
    request.server.rate_limit.take(
        Identity(actor=f"trigger:{name}", role="trigger", tenant=trigger.tenant, permissions=frozenset())
    )
    await request.json()  # strict about what is JSON
    args = await request.caller.call(webhook_calls.trigger_args(name, trigger.tenant, body.decode()))
    encoded, defaults = await encode_args(request, trigger.kind, args)
    made = await request.caller.call(
        webhook_calls.fire_trigger(
            name,
            trigger.tenant,
            signature,
            encoded,
            idempotency_key=_header(request, trigger.idempotency_header),
            dedupe_key=_header(request, trigger.dedupe_header),
            defaults=defaults,
        )
    )
    return json_response(made.job, 202 if made.created else 200, {"Location": f"/v1/jobs/{made.id}"})


async def _check(request: ApiRequest, name: str, body: bytes) -> tuple[TriggerKey, bytes]:
    """The trigger that is meant, and the signature. Raises Problem `unauthenticated`."""
    timestamp = read_timestamp(request.headers.get(TIMESTAMP))
    signature = read_signature(request.headers.get(SIGNATURE))
    if timestamp is None or signature is None:
        raise _unsigned(f"send {TIMESTAMP} (seconds since 1970) and {SIGNATURE} (v1= and 64 hex digits)")
    for trigger in await request.caller.call(webhook_calls.find_triggers(name)):
        if fits(signature, trigger.secret, timestamp, body):
            if abs(trigger.now - timestamp) > trigger.window_seconds:
                raise _unsigned(f"the timestamp is more than {trigger.window_seconds} s away from now")
            return trigger, signature
    raise _unsigned("there is no such trigger, or the signature is not made with its secret over timestamp, dot, body")


def _unsigned(why: str) -> Problem:
    return Problem("unauthenticated", why, headers={"WWW-Authenticate": "Fenceline-HMAC-SHA256"})


def _header(request: ApiRequest, name: str | None) -> str | None:
    value = None if name is None else request.headers.get(name)
    if value is not None and not 0 < len(value) <= 400:  # noqa: PLR2004 - as an Idempotency-Key, less our prefix
        raise Problem("invalid", f"header {name} must have 1 to 400 characters")
    return value


def _tenant(identity: Identity, name: str, tenant: str | None) -> str:
    """Whose trigger is meant. A foreign tenant has none."""
    if tenant is not None and identity.reach is not None and tenant != identity.reach:
        raise _no_trigger(name)
    return tenant or identity.tenant


def _no_trigger(name: str) -> Problem:
    return Problem("not_found", f"trigger {name[:80]!r} does not exist")
