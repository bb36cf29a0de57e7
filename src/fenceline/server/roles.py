"""Roles. Nobody hands out more than they have themselves."""

import json

from fastapi import Response
from pydantic import StrictBool, StrictStr

from fenceline.database import calls
from fenceline.errors import InvalidName
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, router
from fenceline.server.schemas import Body
from fenceline.server.views import View, examples, list_of

routes = router("access")

_WITH_BODY = ("too_large", "unsupported_media_type", "invalid")


class RoleBody(Body):
    """`own_jobs`: whether the role reaches only the jobs that its bearer enqueued. Left out, a new role does, and an
    existing one stays as it is.
    """

    model_config = examples({"permissions": ["jobs:read"], "own_jobs": False})

    permissions: list[StrictStr] | None = None
    own_jobs: StrictBool | None = None


class RoleView(View):
    model_config = examples(
        {
            "name": "viewer", "permissions": ["jobs:read", "workers:view"], "own_jobs": False,
            "all_tenants": False, "built_in": True,
        },
        title="Role",
    )  # fmt: skip

    name: str
    permissions: list[str]
    own_jobs: bool
    all_tenants: bool
    built_in: bool


RoleList = list_of(RoleView, has_pages=True)


@routes.get("/v1/roles", **operation("tokens:manage", model=RoleList))
async def list_roles(request: ApiRequest) -> Response:
    """Every role with its permissions."""
    found = await request.database.call(calls.tokens.list_roles())
    return json_response(json.dumps({"items": found, "next_cursor": None}))


@routes.post("/v1/roles/{name}", **operation("tokens:manage", "conflict", *_WITH_BODY, status=201, model=RoleView))
async def create_role(request: ApiRequest, name: str, body: RoleBody) -> Response:
    """Create a custom role."""
    return json_response(await _set_role(request, name, body, create=True), 201)


@routes.patch("/v1/roles/{name}", **operation("tokens:manage", "not_found", "conflict", *_WITH_BODY, model=RoleView))
async def change_role(request: ApiRequest, name: str, body: RoleBody) -> Response:
    """Change a custom role; its tokens have the new permissions within about a second."""
    try:
        return json_response(await _set_role(request, name, body, create=False))
    except InvalidName as error:
        raise Problem("not_found", f"role {name[:80]!r} does not exist") from error


async def _set_role(request: ApiRequest, name: str, body: RoleBody, *, create: bool) -> str:
    call = calls.tokens.set_role(
        name,
        permissions=body.permissions,
        own_jobs=body.own_jobs,
        actor=request.identity.actor,
        create=create,
        granter=request.identity,
    )
    return json.dumps(await request.database.call(call))


@routes.delete("/v1/roles/{name}", **operation("tokens:manage", "not_found", "conflict", "invalid", status=204))
async def delete_role(request: ApiRequest, name: str) -> Response:
    """Delete a custom role that no valid token has."""
    await request.database.call(calls.tokens.delete_role(name, request.identity))
    return Response(status_code=204)
