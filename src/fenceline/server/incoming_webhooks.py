"""Incoming webhooks: a signed request enqueues a job.

The ways to sign are in `fenceline.model.webhook_schemes`. A request whose signature fits no trigger of that name is
answered as if there were no such trigger.
"""

import json
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, StrictInt, StrictStr

from fenceline.database import calls
from fenceline.database.calls.webhooks import TriggerKey
from fenceline.model.identity import Identity
from fenceline.model.webhook_schemes import SCHEMES, BadSecret, Claim
from fenceline.server.doors import address_key
from fenceline.server.filters import Cursor, answer_page
from fenceline.server.jobs import ENQUEUED, encode_args
from fenceline.server.payloads import body_of, read_payload, read_unknown_body
from fenceline.server.problems import Problem, missing
from fenceline.server.routing import PUBLIC, ApiRequest, json_response, operation, router, value_response
from fenceline.server.schemas import AT, Body, JobOptionsBody, JobView, with_role
from fenceline.server.views import View, examples, list_of

routes = router("triggers")

_NO_CLAIM = Claim(())
_TRIGGER: dict[str, JsonValue] = {
    "name": "deploy", "kind": "deploy", "tenant": "default", "args": {"stage": "test"},
    "map": {"commit": "$.head_commit.id"}, "options": {"priority": 10}, "scheme": "fenceline",
    "idempotency_header": "x-delivery-id",
    "dedupe_header": None, "window_seconds": 300, "enabled": True, "created_at": AT, "created_by": "ann",
    "fired_at": None, "previous_until": None,
}  # fmt: skip
Secret = Annotated[
    StrictStr,
    Field(
        min_length=16, max_length=200,
        description="Generated if omitted. For Slack and Stripe, the one they show you.",
    ),
]  # fmt: skip
SchemeName = Annotated[
    Literal["fenceline", "github", "slack", "stripe", "standard"],
    Field(description="How requests are signed: our way, GitHub's, Slack's, Stripe's, or that of Standard Webhooks."),
]


class TriggerBody(Body):
    """`args` are the same for every job; `map` names arguments and their place in the body (SQL/JSON path); without it
    the body itself is the args. The headers are those that the sender repeats when it repeats a delivery.
    """

    model_config = examples(
        {
            "name": "deploy", "kind": "deploy", "args": {"stage": "test"},
            "map": {"commit": "$.head_commit.id"}, "idempotency_header": "X-Delivery-Id",
        },
    )  # fmt: skip

    name: StrictStr
    kind: StrictStr
    args: dict[str, Any] | None = None
    map: dict[str, StrictStr] | None = None
    options: JobOptionsBody | None = None
    scheme: SchemeName = "fenceline"
    idempotency_header: StrictStr | None = None
    dedupe_header: StrictStr | None = None
    window_seconds: StrictInt | None = None
    secret: Secret | None = None


class TriggerView(View):
    model_config = examples(_TRIGGER, title="Trigger")

    name: str
    tenant: str
    kind: str
    args: dict[str, Any]
    map: dict[str, str] | None
    options: dict[str, Any]
    scheme: SchemeName
    idempotency_header: str | None
    dedupe_header: str | None
    window_seconds: int
    enabled: bool
    created_at: AwareDatetime
    created_by: str | None
    fired_at: AwareDatetime | None
    previous_until: Annotated[AwareDatetime | None, Field(description="Until then the previous secret is valid too.")]


class NewTriggerView(TriggerView):
    model_config = examples(title="NewTrigger")

    secret: Annotated[str, Field(description="What requests are signed with. It is never shown again.")]


class TriggerPayload(BaseModel):
    """A JSON object, or anything that the trigger's map can read."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"head_commit": {"id": "4f1c"}}]})


@routes.get("/v1/triggers", **operation("schedules:manage", model=list_of(TriggerView)))
async def list_triggers(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Incoming webhooks that you may see, by name, without their secrets. A page has at most about 4 MiB."""
    return await answer_page(request, calls.webhooks.triggers(request.identity.reach), cursor)


@routes.post("/v1/triggers", **operation("schedules:manage", "conflict", status=201, model=NewTriggerView))
async def create_trigger(request: ApiRequest, body: TriggerBody) -> Response:
    """Create an incoming webhook. Only this answer shows its secret."""
    settings = body.model_dump(exclude_unset=True, exclude={"name", "secret"})
    settings["options"] = with_role(settings.get("options"), request.identity)
    secret = _secret(body)
    made: str = await request.call(calls.webhooks.create_trigger(body.name, settings, secret, request.identity))
    return value_response({**json.loads(made), "secret": secret}, 201, {"Location": f"/v1/triggers/{body.name}"})


@routes.get("/v1/triggers/{name}", **operation("schedules:manage", "not_found", model=TriggerView))
async def get_trigger(request: ApiRequest, name: str, tenant: Annotated[str | None, Query()] = None) -> Response:
    """One incoming webhook; `tenant` selects another tenant's, if you may see it."""
    found = await request.call(calls.webhooks.triggers(tenant_of(request.identity, name, tenant), name))
    if not found:
        raise missing("trigger", name)
    return json_response(found[0])


@routes.delete("/v1/triggers/{name}", **operation("schedules:manage", "not_found", status=204))
async def delete_trigger(request: ApiRequest, name: str, tenant: Annotated[str | None, Query()] = None) -> None:
    """Delete an incoming webhook; requests to it are refused from now on."""
    identity = request.identity
    await request.call(calls.webhooks.delete_trigger(name, tenant_of(identity, name, tenant), identity))


@routes.post(
    "/v1/triggers/{name}",
    **operation(
        PUBLIC, "unauthenticated", "timeout", "conflict", "not_found", "resource_locked", "limited", "busy", "draining",
        "unavailable",
        status=202, model=JobView,
        answers=ENQUEUED,
        extra={
            "description": "\n".join(
                f"- scheme `{name}`: {scheme.wanted}" for name, scheme in SCHEMES.items()
            ),
            **body_of("TriggerPayload", required=True),
        },
    ),
)  # fmt: skip
async def fire_trigger(request: ApiRequest, name: str) -> Response:
    """Enqueue the job of an incoming webhook. No token: the request is signed with the trigger's secret, once."""
    with request.suspecting():
        trigger, signature, body = await _receive(request, name)
    request.server.rate_limit.take(
        Identity(actor=f"trigger:{name}", role="trigger", tenant=trigger.tenant, permissions=frozenset())
    )
    payload, text = read_payload(request.headers.get("content-type", ""), body)
    if trigger.scheme == "slack" and _is_challenge(payload):
        return value_response({"challenge": payload["challenge"]})
    database = request.server.turns.of(trigger.tenant)
    args = await database.call(calls.webhooks.trigger_args(name, trigger.tenant, text))
    encoded, defaults = await encode_args(request, trigger.kind, args)
    made = await database.call(
        calls.webhooks.fire_trigger(
            name,
            trigger.tenant,
            signature,
            encoded,
            idempotency_key=_header(request, trigger.idempotency_header),
            dedupe_key=_header(request, trigger.dedupe_header),
            defaults=defaults,
        )
    )
    location = {"Location": f"/v1/jobs/{made.id}"}
    if trigger.scheme == "slack":  # it would show people what we answer to a command
        return Response(status_code=200, headers=location)
    return json_response(made.job, 202 if made.created else 200, location)


async def _receive(request: ApiRequest, name: str) -> tuple[TriggerKey, bytes, bytes]:
    """The trigger, the signature and the body. Its size is bounded, as nobody knows yet who sent it.

    Raises Problem `unauthenticated`, `too_large`, `timeout`, `busy`.
    """
    if not any(scheme.read(request.headers) for scheme in SCHEMES.values()):
        raise _unsigned(f"the request is not signed in any way that we know: send {SCHEMES['fenceline'].wanted}")
    server = request.server
    with server.trigger_bodies.one(address_key(request.host)) as has_place:
        if not has_place:
            raise Problem("busy", "too many requests to triggers are under way, in all or from this address")
        found = await request.call(calls.webhooks.trigger_keys(name))
        claims = [SCHEMES[trigger.scheme].read(request.headers) or _NO_CLAIM for trigger in found]
        # For an unknown trigger the answer takes just as long.
        signings = [
            claim.start(SCHEMES[trigger.scheme].key(trigger.secret))
            for trigger, claim in zip(found, claims, strict=True)
        ] or [_NO_CLAIM.start(b"")]

        def sign(chunk: bytes) -> None:
            for signing in signings:
                signing.update(chunk)

        body = await read_unknown_body(request, sign)
    for trigger, claim, signing in zip(found, claims, signings, strict=False):
        if claim.fits(signing):
            if claim.timestamp is not None and abs(trigger.now - claim.timestamp) > trigger.window_seconds:
                raise _unsigned(f"the timestamp is more than {trigger.window_seconds} s away from now")
            return trigger, signing.digest(), body
    raise _unsigned("there is no such trigger, or the request is not signed with its secret in the way of its scheme")


def _secret(body: TriggerBody) -> str:
    """Raises Problem `invalid` for a secret that the scheme cannot use, or a missing one that only the sender knows."""
    scheme = SCHEMES[body.scheme]
    if body.secret is None:
        if scheme.make_secret is None:
            raise Problem("invalid", f"secret is missing: give the signing secret that {body.scheme.title()} shows you")
        return scheme.make_secret()
    try:
        scheme.key(body.secret)
    except BadSecret as error:
        raise Problem("invalid", str(error)) from error
    return body.secret


def _is_challenge(payload: Any) -> bool:
    """Whether Slack asks if the address is ours."""
    return (
        isinstance(payload, dict)
        and payload.get("type") == "url_verification"
        and isinstance(payload.get("challenge"), str)
    )


def _unsigned(why: str) -> Problem:
    return Problem("unauthenticated", why, headers={"WWW-Authenticate": "Fenceline-HMAC-SHA256"})


def _header(request: ApiRequest, name: str | None) -> str | None:
    value = None if name is None else request.headers.get(name)
    if value is not None and not 0 < len(value) <= 400:  # noqa: PLR2004 - as an Idempotency-Key, less our prefix
        raise Problem("invalid", f"header {name} must have 1 to 400 characters")
    return value


def tenant_of(identity: Identity, name: str, tenant: str | None) -> str:
    """The tenant whose trigger is meant. Raises Problem `not_found` for one that the caller may not see."""
    if tenant is not None and identity.reach is not None and tenant != identity.reach:
        raise missing("trigger", name)
    return tenant or identity.tenant
