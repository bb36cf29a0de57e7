"""Tokens and roles. Nobody hands out what he does not have himself."""

import json
from typing import Annotated

from fastapi import Query, Response
from pydantic import AwareDatetime, ConfigDict, Field, StrictBool, StrictStr

from fenceline.database import access_calls
from fenceline.errors import InvalidName, UnknownRole
from fenceline.model.secret import new_token
from fenceline.server.problems import Problem
from fenceline.server.queries import Limit
from fenceline.server.routing import ApiRequest, json_response, operation, router
from fenceline.server.schemas import AT, Body, Moment, View

routes = router("access")

MOST_ID = 2**31 - 1
_WITH_BODY = ("too_large", "unsupported_media_type", "invalid")


class TokenBody(Body):
    """`name` is the actor: `created_by` of the token's jobs. Without tenant: that of the one who asks."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "producer", "tenant": "acme", "name": "ci"}]})

    role: StrictStr
    tenant: StrictStr | None = None
    name: StrictStr | None = None
    expires_at: Moment | None = None


class TokenView(View):
    model_config = ConfigDict(
        title="Token",
        json_schema_extra={
            "examples": [
                {
                    "id": 7, "name": "ci", "role": "producer", "tenant": "acme", "created_at": AT, "created_by": "ann",
                    "expires_at": None, "revoked_at": None, "last_used_at": AT,
                }
            ]
        },
    )  # fmt: skip

    id: int
    name: str
    role: str
    tenant: str
    created_at: AwareDatetime
    created_by: str | None
    expires_at: AwareDatetime | None
    revoked_at: AwareDatetime | None
    last_used_at: AwareDatetime | None


class NewTokenView(TokenView):
    model_config = ConfigDict(title="NewToken", json_schema_extra={"examples": []})

    token: Annotated[str, Field(description="The secret. It is shown here and never again.")]


class TokenList(View):
    items: list[TokenView]
    next_cursor: str | None


class RoleBody(Body):
    """Without `own_jobs` the role's job verbs reach only what its actor enqueued."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"permissions": ["jobs:read"], "own_jobs": False}]})

    permissions: list[StrictStr] | None = None
    own_jobs: StrictBool | None = None


class RoleView(View):
    model_config = ConfigDict(
        title="Role",
        json_schema_extra={
            "examples": [
                {
                    "name": "viewer", "permissions": ["jobs:read", "workers:view"], "own_jobs": False,
                    "all_tenants": False, "built_in": True,
                }
            ]
        },
    )  # fmt: skip

    name: str
    permissions: list[str]
    own_jobs: bool
    all_tenants: bool
    built_in: bool


class RoleList(View):
    items: list[RoleView]
    next_cursor: str | None


@routes.get("/v1/tokens", **operation("tokens:manage", "invalid", model=TokenList))
async def list_tokens(
    request: ApiRequest, limit: Limit = 100, cursor: Annotated[int | None, Query(ge=1, le=MOST_ID)] = None
) -> Response:
    """Tokens in reach, newest first, revoked and expired ones too; never their secrets."""
    found = await request.caller.call(
        access_calls.list_tokens(tenant=request.identity.reach, limit=limit, cursor=cursor)
    )
    last = str(found[-1]["id"]) if len(found) == limit else None
    return json_response(json.dumps({"items": found, "next_cursor": last}))


@routes.post("/v1/tokens", **operation("tokens:manage", *_WITH_BODY, status=201, model=NewTokenView))
async def create_token(request: ApiRequest, body: TokenBody) -> Response:
    """Make a token. The answer is the only place where its secret ever stands."""
    identity = request.identity
    token, token_hash = new_token()
    call = access_calls.create_token(
        token_hash,
        role=body.role,
        tenant=body.tenant or identity.tenant,
        name=body.name,
        expires_at=body.expires_at,
        actor=identity.actor,
        granter=identity,
    )
    try:
        made = await request.caller.call(call)
    except UnknownRole as error:
        # In a body it is a wrong value; only in a path it is a missing thing.
        raise Problem("invalid", str(error), errors=[{"field": "role", "message": str(error)}]) from error
    return json_response(json.dumps({**made, "token": token}), 201, {"Location": f"/v1/tokens/{made['id']}"})


@routes.delete("/v1/tokens/{id}", **operation("tokens:manage", "not_found", "invalid", status=204))
async def revoke_token(request: ApiRequest, id: str) -> Response:  # noqa: A002 - the contract's name
    """Revoke a token. Servers refuse it within about a second, and close its streams."""
    if not (id.isascii() and id.isdigit() and int(id) <= MOST_ID):
        raise Problem("not_found", f"token {id[:40]!r} does not exist")
    identity = request.identity
    await request.caller.call(access_calls.revoke_token(int(id), actor=identity.actor, tenant=identity.reach))
    return Response(status_code=204)


@routes.get("/v1/roles", **operation("tokens:manage", model=RoleList))
async def list_roles(request: ApiRequest) -> Response:
    """Every role with its permissions."""
    found = await request.caller.call(access_calls.list_roles())
    return json_response(json.dumps({"items": found, "next_cursor": None}))


@routes.post("/v1/roles/{name}", **operation("tokens:manage", "conflict", *_WITH_BODY, status=201, model=RoleView))
async def create_role(request: ApiRequest, name: str, body: RoleBody) -> Response:
    """Make a role of your own."""
    return json_response(await _set_role(request, name, body, create=True), 201)


@routes.patch("/v1/roles/{name}", **operation("tokens:manage", "not_found", "conflict", *_WITH_BODY, model=RoleView))
async def change_role(request: ApiRequest, name: str, body: RoleBody) -> Response:
    """Change a role of your own; its tokens have the new permissions within about a second."""
    try:
        return json_response(await _set_role(request, name, body, create=False))
    except InvalidName as error:
        raise Problem("not_found", f"role {name[:80]!r} does not exist") from error


async def _set_role(request: ApiRequest, name: str, body: RoleBody, *, create: bool) -> str:
    call = access_calls.set_role(
        name,
        permissions=body.permissions,
        own_jobs=body.own_jobs,
        actor=request.identity.actor,
        create=create,
        granter=request.identity,
    )
    return json.dumps(await request.caller.call(call))


@routes.delete("/v1/roles/{name}", **operation("tokens:manage", "not_found", "conflict", "invalid", status=204))
async def delete_role(request: ApiRequest, name: str) -> Response:
    """Delete a role of your own that no valid token has."""
    await request.caller.call(access_calls.delete_role(name, request.identity))
    return Response(status_code=204)
