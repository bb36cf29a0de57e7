"""`/v1/session`: who the caller is, signing in and out."""

import json
from dataclasses import asdict
from typing import Annotated

from fastapi import Response
from pydantic import AwareDatetime, Field, StrictStr, model_validator

from fenceline.model.identity import Identity
from fenceline.model.secret import PREFIX, hash_token
from fenceline.server.auth import MAX_BYTES
from fenceline.server.dashboard import cookie, origin
from fenceline.server.dashboard.sessions import make_code
from fenceline.server.problems import Problem
from fenceline.server.routing import PUBLIC, SIGNED_IN, ApiRequest, json_response, operation, router, value_response
from fenceline.server.schemas import AT, Body
from fenceline.server.views import View, examples, shows

routes = router("session")

_Secret = Annotated[StrictStr, Field(max_length=MAX_BYTES)]


class SignInBody(Body):
    """Either a token, or a one-time code."""

    model_config = examples({"token": "fl_…"})

    token: _Secret | None = None
    code: _Secret | None = None

    @model_validator(mode="after")
    def _check(self) -> "SignInBody":
        if (self.token is None) == (self.code is None):
            raise ValueError("give either token or code")
        return self


@shows(Identity, without=("token_id",))
class SessionView(View):
    """The caller. `csrf` is null for requests with a token, which need no CSRF token."""

    model_config = examples(
        {
            "actor": "ann", "role": "operator", "tenant": "default", "permissions": ["jobs:read"],
            "own_jobs": False, "all_tenants": False, "lanes": None, "kinds": None, "csrf": "9f2c…",
        },
        title="Session",
    )  # fmt: skip

    permissions: list[str]
    lanes: list[str] | None
    kinds: list[str] | None
    csrf: Annotated[str | None, Field(description="Send it as `X-Fenceline-CSRF` with every change.")]


class CodeView(View):
    model_config = examples({"code": "fl_…", "expires_at": AT}, title="LoginCode")

    code: Annotated[str, Field(description="Valid for one sign-in. It is never shown again.")]
    expires_at: AwareDatetime


def _view(identity: Identity, secret: str | None) -> str:
    shown = {**asdict(identity), "csrf": None if secret is None else cookie.csrf_token(secret)}
    del shown["token_id"]
    return json.dumps(shown, default=sorted)  # sets as lists


@routes.get("/v1/session", **operation(SIGNED_IN, model=SessionView))
async def get_session(request: ApiRequest) -> Response:
    """Who you are and what you may do, with a token or with the cookie of a session."""
    return json_response(_view(request.identity, request.session_secret))


@routes.post("/v1/session", **operation(PUBLIC, "unauthenticated", "forbidden", "limited", model=SessionView))
async def sign_in(request: ApiRequest, body: SignInBody) -> Response:
    """Open a session with a token or a one-time code: the answer sets its cookie."""
    server = request.server
    with request.suspecting(body.token or body.code):
        origin.check_page(request, server.settings)
        secret = await server.sessions.open(token=body.token, code=body.code)
        identity = await server.authenticator.find_session(hash_token(secret))
        if identity is None:
            raise Problem("unauthenticated", "the token has just ended")
    answer = json_response(_view(identity, secret))
    cookie.give(request, answer, secret, seconds=server.settings.session_seconds)
    return answer


@routes.delete("/v1/session", **operation(SIGNED_IN, status=204))
async def sign_out(request: ApiRequest) -> Response:
    """End the session that this request comes with; its streams are closed within about a second."""
    answer = Response(status_code=204)
    if request.session_secret is not None:
        await request.server.sessions.close(request.session_secret)
        cookie.take_back(request, answer)
    return answer


@routes.post("/v1/session/codes", **operation(SIGNED_IN, "not_found", status=201, model=CodeView))
async def create_code(request: ApiRequest) -> Response:
    """Create a code with which a browser can open one session as this token, within ten minutes."""
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not token.startswith(PREFIX):
        raise Problem("invalid", "a sign-in code is made for a token: send one as `Authorization: Bearer …`")
    code, expires_at = await make_code(request.database, hash_token(token))
    return value_response({"code": code, "expires_at": expires_at.isoformat()}, 201)
