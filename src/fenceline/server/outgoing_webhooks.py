"""Outgoing webhooks, which report the ends of jobs to other systems."""

import json
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Response
from pydantic import AwareDatetime, Field, JsonValue, StrictStr

from fenceline.database import calls
from fenceline.model.signature import new_secret
from fenceline.model.status import FinalStatus
from fenceline.server.incoming_webhooks import Secret
from fenceline.server.problems import invalid
from fenceline.server.routing import ApiRequest, list_response, operation, read_number, router, value_response
from fenceline.server.schemas import AT, Body
from fenceline.server.views import View, examples, list_of

routes = router("hooks")

_HOOK: dict[str, JsonValue] = {
    "id": 3, "url": "https://example.com/fenceline", "kinds": ["ingest"], "statuses": ["failed"], "tenant": "default",
    "created_at": AT, "created_by": "ann",
}  # fmt: skip


class HookBody(Body):
    """Without `kinds` it reports jobs of every kind, without `statuses` every end."""

    model_config = examples({"url": "https://example.com/fenceline", "statuses": ["failed"]})

    url: Annotated[StrictStr, Field(max_length=2000)]
    kinds: Annotated[list[StrictStr], Field(min_length=1, max_length=100)] | None = None
    statuses: Annotated[list[FinalStatus], Field(min_length=1)] | None = None
    secret: Secret | None = None


class HookView(View):
    model_config = examples(_HOOK, title="Hook")

    id: int
    url: str
    kinds: list[str] | None
    statuses: list[FinalStatus]
    tenant: str
    created_at: AwareDatetime
    created_by: str | None
    previous_until: Annotated[AwareDatetime | None, Field(description="Until then the previous secret is valid too.")]


class NewHookView(HookView):
    model_config = examples(title="NewHook")

    secret: Annotated[str, Field(description="What deliveries are signed with. It is never shown again.")]


@routes.get("/v1/hooks", **operation("hooks:manage", model=list_of(HookView, has_pages=False)))
async def list_hooks(request: ApiRequest) -> Response:
    """Outgoing webhooks that you may see, without their secrets."""
    return list_response(await request.call(calls.webhooks.hooks(request.identity.reach)))


@routes.post("/v1/hooks", **operation("hooks:manage", status=201, model=NewHookView))
async def create_hook(request: ApiRequest, body: HookBody) -> Response:
    """Post finished jobs to an address; each delivery is a job. Only this answer shows the secret."""
    _check_url(body.url, allow_http=request.server.settings.hooks_allow_http)
    secret = body.secret or new_secret()
    statuses: list[str] | None = None if body.statuses is None else [*body.statuses]
    call = calls.webhooks.create_hook(body.url, secret, request.identity, kinds=body.kinds, statuses=statuses)
    hook = json.loads(await request.call(call))
    return value_response({**hook, "secret": secret}, 201, {"Location": f"/v1/hooks/{hook['id']}"})


@routes.delete("/v1/hooks/{id}", **operation("hooks:manage", "not_found", status=204))
async def delete_hook(request: ApiRequest, id: str) -> None:
    """Delete an outgoing webhook; waiting deliveries will fail."""
    await request.call(calls.webhooks.delete_hook(read_number("hook", id), request.identity))


def _check_url(url: str, *, allow_http: bool) -> None:
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc and url.isascii()
    except ValueError:
        is_valid = False
    else:
        is_valid = is_valid and (parts.scheme == "https" or (allow_http and parts.scheme == "http"))
    if not is_valid:
        why = "" if allow_http else "; http is not allowed here"
        raise invalid("url", f"use https://host/path, without a name and password{why}")
