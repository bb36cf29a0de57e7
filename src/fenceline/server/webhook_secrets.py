"""New secrets for incoming and outgoing webhooks. The old one stays valid while the other side changes over."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field, StrictFloat, StrictInt

from fenceline.database import calls
from fenceline.model.identity import Identity
from fenceline.model.signature import new_secret
from fenceline.server.incoming_webhooks import NewTriggerView, Secret, tenant_of
from fenceline.server.outgoing_webhooks import NewHookView
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, operation, read_number, router, value_response
from fenceline.server.schemas import Body
from fenceline.server.views import examples

routes = router("webhooks")

DAY_SECONDS = 86_400
MAX_OVERLAP_SECONDS = 30 * DAY_SECONDS


class RotateBody(Body):
    model_config = examples({"overlap_seconds": 3600})

    secret: Secret | None = None
    overlap_seconds: Annotated[
        StrictInt | StrictFloat,
        Field(ge=0, le=MAX_OVERLAP_SECONDS, description="How long the old secret stays valid; 0: it ends at once."),
    ] = DAY_SECONDS


@routes.post("/v1/triggers/{name}/rotate", **operation("schedules:manage", "not_found", model=NewTriggerView))
async def rotate_trigger(
    request: ApiRequest, name: str, body: RotateBody, tenant: Annotated[str | None, Query()] = None
) -> Response:
    """Give an incoming webhook a new secret. Requests may be signed with either until the overlap ends."""
    wanted, secret = tenant_of(request.identity, name, tenant), body.secret or new_secret()
    for trigger in await request.call(calls.webhooks.triggers(wanted, name)):
        _check_identity(json.loads(trigger)["options"], request.identity)
    made: str = await request.call(
        calls.webhooks.rotate_secret(secret, body.overlap_seconds, request.identity, tenant=wanted, trigger=name)
    )
    return value_response({**json.loads(made), "secret": secret})


def _check_identity(options: Mapping[str, Any], identity: Identity) -> None:
    """Whoever has the secret can run jobs with the trigger's identity. Raises Problem `forbidden`."""
    role = options.get("actor_role", identity.role)
    if options.get("identity") is not None and role != identity.role:
        raise Problem("forbidden", f"the trigger names an identity for role {role!r}: make one of your own")


@routes.post("/v1/hooks/{id}/rotate", **operation("hooks:manage", "not_found", model=NewHookView))
async def rotate_hook(request: ApiRequest, id: str, body: RotateBody) -> Response:
    """Give an outgoing webhook a new secret. Deliveries are signed with both until the overlap ends."""
    hook_id, identity, secret = read_number("hook", id), request.identity, body.secret or new_secret()
    made: str = await request.call(
        calls.webhooks.rotate_secret(secret, body.overlap_seconds, identity, tenant=identity.reach, hook_id=hook_id)
    )
    return value_response({**json.loads(made), "secret": secret})
