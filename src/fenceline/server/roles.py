"""Roles. Nobody can grant more than they have themselves."""

from typing import Any

from fastapi import Response
from pydantic import StrictBool, StrictStr

from fenceline.database import calls
from fenceline.errors import InvalidName
from fenceline.server.problems import missing
from fenceline.server.routing import ApiRequest, operation, router, value_response
from fenceline.server.schemas import Body
from fenceline.server.views import View, examples, list_of

routes = router("access")


class RoleBody(Body):
    """`own_jobs`: whether the role gives access only to jobs that its holder enqueued. The default is true for a new
    role; an existing one keeps its value.
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


@routes.get("/v1/roles", **operation("tokens:manage", model=list_of(RoleView)))
async def list_roles(request: ApiRequest) -> Response:
    """Every role with its permissions."""
    found = await request.call(calls.tokens.list_roles())
    return value_response({"items": found, "next_cursor": None})


@routes.post("/v1/roles/{name}", **operation("tokens:manage", "conflict", status=201, model=RoleView))
async def create_role(request: ApiRequest, name: str, body: RoleBody) -> Response:
    """Create a custom role."""
    return value_response(await _set_role(request, name, body, create=True), 201)


@routes.patch("/v1/roles/{name}", **operation("tokens:manage", "not_found", "conflict", model=RoleView))
async def change_role(request: ApiRequest, name: str, body: RoleBody) -> Response:
    """Change a custom role; its tokens have the new permissions within about a second."""
    try:
        return value_response(await _set_role(request, name, body, create=False))
    except InvalidName as error:
        raise missing("role", name) from error


async def _set_role(request: ApiRequest, name: str, body: RoleBody, *, create: bool) -> dict[str, Any]:
    identity = request.identity
    return await request.call(
        calls.tokens.set_role(name, **body.model_dump(), actor=identity.actor, create=create, granter=identity)
    )


@routes.delete("/v1/roles/{name}", **operation("tokens:manage", "not_found", "conflict", status=204))
async def delete_role(request: ApiRequest, name: str) -> None:
    """Delete a custom role that no valid token has."""
    await request.call(calls.tokens.delete_role(name, request.identity))
