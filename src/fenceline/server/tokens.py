"""Tokens. Nobody can grant more than they have themselves."""

from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import AwareDatetime, Field, StrictFloat, StrictInt, StrictStr

from fenceline.database import calls
from fenceline.errors import UnknownRole
from fenceline.model.secret import hash_token, new_token
from fenceline.server.filters import Limit
from fenceline.server.problems import invalid
from fenceline.server.routing import MAX_ID, ApiRequest, operation, read_number, router, value_response
from fenceline.server.schemas import AT, Body, Moment, Name
from fenceline.server.views import View, examples, list_of

routes = router("access")


class TokenBody(Body):
    """`name` is the actor: `created_by` of the token's jobs. `tenant` defaults to the caller's."""

    model_config = examples({"role": "producer", "tenant": "acme", "name": "ci"})

    role: StrictStr
    tenant: StrictStr | None = None
    name: StrictStr | None = None
    expires_at: Annotated[
        Moment | Literal["never"] | None,
        Field(description="Default: after 90 days, or as the database is configured."),
    ] = None
    lanes: Annotated[list[Name] | None, Field(description="The token may enqueue and claim in these lanes only.")] = (
        None
    )
    kinds: Annotated[list[Name] | None, Field(description="The token may enqueue and claim these kinds only.")] = None


class RotateBody(Body):
    model_config = examples({"overlap_seconds": 300})

    overlap_seconds: Annotated[
        StrictFloat | StrictInt, Field(ge=0, le=3600, description="For how many seconds the old token stays valid.")
    ] = 300


class TokenView(View):
    model_config = examples(
        {
            "id": 7, "name": "ci", "role": "producer", "tenant": "acme", "created_at": AT, "created_by": "ann",
            "expires_at": None, "revoked_at": None, "last_used_at": AT, "replaced_by": None,
            "lanes": None, "kinds": None,
        },
        title="Token",
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
    replaced_by: Annotated[int | None, Field(description="The id of the token that replaced it.")]
    lanes: list[str] | None
    kinds: list[str] | None


class NewTokenView(TokenView):
    model_config = examples(title="NewToken")

    token: Annotated[str, Field(description="The secret. It is never shown again.")]


@routes.get("/v1/tokens", **operation("tokens:manage", model=list_of(TokenView)))
async def list_tokens(
    request: ApiRequest, limit: Limit = 100, cursor: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None
) -> Response:
    """Tokens that you may see, newest first, including revoked and expired ones, without their secrets."""
    found = await request.call(calls.tokens.list_tokens(tenant=request.identity.reach, limit=limit, cursor=cursor))
    last = str(found[-1]["id"]) if len(found) == limit else None
    return value_response({"items": found, "next_cursor": last})


@routes.post("/v1/tokens", **operation("tokens:manage", status=201, model=NewTokenView))
async def create_token(request: ApiRequest, body: TokenBody) -> Response:
    """Create a token. Only this answer shows its secret."""
    identity = request.identity
    token, token_hash = new_token()
    call = calls.tokens.create_token(
        token_hash,
        role=body.role,
        tenant=body.tenant or identity.tenant,
        name=body.name,
        expires_at=body.expires_at,
        actor=identity.actor,
        granter=identity,
    )
    try:
        made = await request.call(call)
    except UnknownRole as error:
        # In a body an unknown role is a wrong value; only in a path it is a missing thing.
        raise invalid("role", str(error), str(error)) from error
    if body.lanes is not None or body.kinds is not None:
        made = await request.call(
            calls.tokens.bind_token(made["id"], lanes=body.lanes, kinds=body.kinds, actor=identity.actor)
        )
    return value_response({**made, "token": token}, 201, {"Location": f"/v1/tokens/{made['id']}"})


@routes.post("/v1/tokens/rotate", **operation("runners:claim", "not_found", model=NewTokenView))
async def rotate_token(request: ApiRequest, body: RotateBody | None = None) -> Response:
    """Exchange the token of this request for a new one with the same name, role, tenant and lifetime.

    The old one stays valid for a moment, so that a lost answer can be requested again.
    """
    _scheme, _, old = request.headers.get("authorization", "").partition(" ")
    token, token_hash = new_token()
    overlap = (body or RotateBody()).overlap_seconds
    made = await request.call(calls.tokens.rotate_token(hash_token(old.strip()), token_hash, overlap_seconds=overlap))
    return value_response({**made, "token": token})


@routes.delete("/v1/tokens/{id}", **operation("tokens:manage", "not_found", status=204))
async def revoke_token(request: ApiRequest, id: str) -> None:
    """Revoke a token. Servers refuse it within about a second, and close its streams."""
    token_id, identity = read_number("token", id), request.identity
    await request.call(calls.tokens.revoke_token(token_id, actor=identity.actor, tenant=identity.reach))
