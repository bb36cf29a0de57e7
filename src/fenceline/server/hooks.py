"""Outgoing webhooks: where the ends of jobs are reported to."""

import json
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import Response
from pydantic import AwareDatetime, ConfigDict, Field, JsonValue, StrictStr

from fenceline.database import webhook_calls
from fenceline.model.signature import new_secret
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, list_response, operation, router
from fenceline.server.schemas import AT, Body, View
from fenceline.server.triggers import Secret

routes = router("hooks")

MOST_ID = 2**31 - 1
End = Literal["succeeded", "succeeded_with_errors", "failed", "cancelled"]
_HOOK: dict[str, JsonValue] = {
    "id": 3, "url": "https://example.com/fenceline", "kinds": ["ingest"], "statuses": ["failed"], "tenant": "default",
    "created_at": AT, "created_by": "ann",
}  # fmt: skip


class HookBody(Body):
    """Without `kinds` jobs of every kind, without `statuses` every end."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "https://example.com/fenceline", "statuses": ["failed"]}]}
    )

    url: Annotated[StrictStr, Field(max_length=2000)]
    kinds: Annotated[list[StrictStr], Field(min_length=1, max_length=100)] | None = None
    statuses: Annotated[list[End], Field(min_length=1)] | None = None
    secret: Secret | None = None


class HookView(View):
    model_config = ConfigDict(title="Hook", json_schema_extra={"examples": [_HOOK]})

    id: int
    url: str
    kinds: list[str] | None
    statuses: list[End]
    tenant: str
    created_at: AwareDatetime
    created_by: str | None


class NewHookView(HookView):
    model_config = ConfigDict(title="NewHook", json_schema_extra={"examples": []})

    secret: Annotated[str, Field(description="What deliveries are signed with. It is shown here and never again.")]


class HookList(View):
    items: list[HookView]
    next_cursor: None


@routes.get("/v1/hooks", **operation("hooks:manage", model=HookList))
async def list_hooks(request: ApiRequest) -> Response:
    """Outgoing webhooks in reach; never their secrets."""
    found = await request.caller.call(webhook_calls.hooks(request.identity.reach))
    return list_response(found)


@routes.post(
    "/v1/hooks",
    **operation("hooks:manage", "too_large", "unsupported_media_type", "invalid", status=201, model=NewHookView),
)
async def create_hook(request: ApiRequest, body: HookBody) -> Response:
    """Have the ends of jobs posted to an address, each as a job of its own. The answer alone shows the secret."""
    _check_url(body.url, allow_http=request.server.settings.hooks_allow_http)
    secret = body.secret or new_secret()
    made: str = await request.caller.call(
        webhook_calls.create_hook(
            body.url,
            secret,
            request.identity,
            kinds=body.kinds,
            statuses=None if body.statuses is None else [*body.statuses],
        )
    )
    hook = json.loads(made)
    return json_response(json.dumps({**hook, "secret": secret}), 201, {"Location": f"/v1/hooks/{hook['id']}"})


@routes.delete("/v1/hooks/{id}", **operation("hooks:manage", "not_found", "invalid", status=204))
async def delete_hook(request: ApiRequest, id: str) -> Response:  # noqa: A002 - the contract's name
    """Delete an outgoing webhook; deliveries that wait will fail."""
    if not (id.isascii() and id.isdigit() and int(id) <= MOST_ID):
        raise Problem("not_found", f"hook {id[:40]!r} does not exist")
    await request.caller.call(webhook_calls.delete_hook(int(id), request.identity))
    return Response(status_code=204)


def _check_url(url: str, *, allow_http: bool) -> None:
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc and url.isascii()
    except ValueError:
        is_valid = False
    else:
        is_valid = is_valid and (parts.scheme == "https" or (allow_http and parts.scheme == "http"))
    if not is_valid:
        message = "use https://host/path, without a name and password" + (
            "" if allow_http else "; http is not allowed here"
        )
        raise Problem("invalid", f"url: {message}", errors=[{"field": "url", "message": message}])
