"""Routes are closed unless they say who may use them, and requests are read strictly.

Each route names its permission (`operation("jobs:read")`) or says `PUBLIC`; one that does neither fails when the app is
created. Checks come in this order: token (401), rate (429), permission (403), then media type (415) and size (413), and
only then FastAPI's own validation.
"""

import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic_core import from_json

from fenceline.database.call import Call, text_of, texts_of
from fenceline.model.identity import Identity
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.server.dashboard import cookie
from fenceline.server.doors import address_key
from fenceline.server.hiding import hide
from fenceline.server.problems import PROBLEMS, Problem, problem_of
from fenceline.server.protocol import CONNECTION
from fenceline.server.tenant_turns import TenantDatabase

if TYPE_CHECKING:
    from fenceline.server.asgi_app import Server

T = TypeVar("T")

PERMISSION = "x-permission"
PUBLIC = "public"
#: For everybody who has a valid token or session, whatever their permissions.
SIGNED_IN = "signed_in"
#: The permission of runners, which may have to present a client certificate too.
RUNNING = "runners:claim"

#: The largest id of a token, hook or runner.
MAX_ID = 2**31 - 1

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class ApiRequest(Request):
    """What an endpoint gets: the caller's identity, and access to the database on the caller's behalf."""

    @property
    def server(self) -> "Server":
        server: Server = self.app.state.server
        return server

    @property
    def database(self) -> TenantDatabase:
        """The database with the turns of the caller's tenant; requests without a token share theirs."""
        identity: Identity | None = getattr(self.state, "identity", None)
        return self.server.turns.of("" if identity is None else identity.tenant)

    async def call(self, call: Call[T]) -> T:
        """Run a call in the turn of the caller's tenant."""
        return await self.database.call(call)

    async def answer(self, call: Call[Any], status: int = 200) -> Response:
        """The JSON that a call answers with, passed on as it is."""
        return json_response(await self.call(text_of(call)), status)

    async def answer_list(self, call: Call[list[Any]]) -> Response:
        """The same for a call with one JSON value per row, as a list without pages."""
        return list_response(await self.call(texts_of(call)))

    @property
    def identity(self) -> Identity:
        """The caller. Only routes with a permission have one."""
        identity: Identity = self.state.identity
        return identity

    async def admit(self, permission: str) -> None:
        """Identify the caller and check the permission. Raises Problem `unauthenticated`, `limited`, `forbidden`."""
        credentials = self.headers.get("authorization") or self.session_secret
        with self.suspecting(credentials):
            await self._admit(permission)
        self.server.suspicion.admitted(credentials)

    @contextlib.contextmanager
    def suspecting(self, credentials: str | None = None) -> Iterator[None]:
        """Count refusals within the block against the address. Raises Problem `limited`."""
        suspicion, address = self.server.suspicion, address_key(self.host)
        suspicion.check(address, credentials)
        try:
            yield
        except Problem as problem:
            if problem.code in {"unauthenticated", "forbidden"}:
                suspicion.refused(address, credentials)
            raise

    async def _admit(self, permission: str) -> None:
        identity = self.state.identity = await self.server.identify(self)
        self.server.rate_limit.take(identity)
        tls = self.server.settings.tls
        if permission == RUNNING and tls is not None and tls.client_ca is not None and not self.has_certificate:
            raise Problem("forbidden", "runners must show a client certificate here: --tls-cert and --tls-key")
        if permission != SIGNED_IN and not identity.may(permission):
            who = "a token that is bound to lanes or kinds" if identity.is_bound else f"role {identity.role!r}"
            raise Problem("forbidden", f"{who} does not have the permission {permission}")

    @property
    def session_secret(self) -> str | None:
        """The browser's session cookie; an `Authorization` header takes precedence."""
        return None if "authorization" in self.headers else cookie.read(self)

    @property
    def host(self) -> str:
        """The client's address; behind a trusted proxy, the one that the proxy names."""
        return self.client.host if self.client else ""

    @property
    def has_certificate(self) -> bool:
        connection = self.scope.get("extensions", {}).get(CONNECTION)
        return connection is not None and connection.has_certificate

    async def stream(self) -> AsyncGenerator[bytes, None]:
        async for chunk in self.bounded_stream(self.server.settings.max_body_bytes):
            yield chunk

    async def bounded_stream(self, most: int) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises Problem `too_large`."""
        if _announced(self) > most:
            raise _too_large(most)
        read = 0
        async for chunk in super().stream():
            read += len(chunk)
            if read > most:
                raise _too_large(most)
            yield chunk

    async def json(self) -> Any:
        return read_json(await self.body())


def read_json(body: bytes) -> Any:
    """Raises Problem `invalid`."""
    try:
        # Not the standard library's: this refuses NaN and Infinity, is faster, and safe with deep nesting.
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Problem("invalid", f"the body is not JSON: {error}") from error


class GuardedRoute(APIRoute):
    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        extra = self.openapi_extra or {}
        if PERMISSION not in extra:
            raise TypeError(f"route {path} names no permission: add **operation(…)")
        self.permission = str(extra[PERMISSION])
        self.takes_body = self.body_field is not None or "requestBody" in extra
        if self.takes_body:
            self.responses |= _problem_answers(["too_large", "unsupported_media_type"])

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        extra = self.openapi_extra or {}
        media_types = tuple(extra.get("requestBody", {}).get("content", ("application/json",)))
        known = frozenset(_query_names(self.dependant))

        async def guarded(request: Request) -> Response:
            strict = ApiRequest(request.scope, request.receive)
            started = time.perf_counter()
            status = 500
            try:
                if self.permission != PUBLIC:
                    await strict.admit(self.permission)
                _check_path(strict)
                _check_query(strict, known)
                if request.method in _BODY_METHODS:
                    _check_body(strict, media_types)
                    if not self.takes_body:
                        await _check_no_body(strict)
                response = hidden_from(strict, await handle(strict))
                status = response.status_code
            except Exception as error:
                problem = problem_of(error)
                if problem is not None:
                    status = problem.status_code
                raise
            finally:
                strict.server.metrics.count(request.method, self.path, status, time.perf_counter() - started)
            return response

        return guarded


def hidden_from(request: ApiRequest, response: Response) -> Response:
    """The answer, without args and results if the caller may not see them."""
    identity: Identity | None = getattr(request.state, "identity", None)
    if identity is None or not identity.hides_args or response.media_type != "application/json":
        return response
    hidden = hide(bytes(response.body))
    kept = {name: value for name, value in response.headers.items() if name != "content-length"}
    return Response(hidden, response.status_code, headers=kept, media_type=response.media_type)


def _check_path(request: ApiRequest) -> None:
    """No name contains a zero character, and PostgreSQL would reject one even in a lookup."""
    if any("\0" in str(value) for value in request.path_params.values()):
        raise Problem("not_found", "there is nothing at this path: names cannot contain a zero character")


def _query_names(dependant: Dependant) -> Iterator[str]:
    """The query parameters of an endpoint and of its dependencies."""
    for field in dependant.query_params:
        yield field.alias
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _check_query(request: ApiRequest, known: frozenset[str]) -> None:
    """A misspelt filter must not show everything."""
    if not request.scope["query_string"]:
        return
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        takes = f"use {', '.join(sorted(known))}" if known else "this route takes none"
        raise Problem(
            "invalid",
            f"unknown query parameters {', '.join(name[:80] for name in unknown[:5])!r}: {takes}",
            errors=[{"field": name[:80], "message": f"is not known: {takes}"} for name in unknown[:10]],
        )


async def _check_no_body(request: ApiRequest) -> None:
    if (await request.body()).strip() not in {b"", b"{}", b"null"}:
        raise Problem("invalid", "this route takes no body")


def _check_body(request: ApiRequest, media_types: Sequence[str]) -> None:
    """Media type and announced size; a body that turns out to be larger is cut off while it is read."""
    if "transfer-encoding" not in request.headers and not _announced(request):
        return
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        wanted = " or ".join(media_types)
        raise Problem("unsupported_media_type", f"the body is {media_type or 'of no type'}: send {wanted}")
    most = request.server.settings.max_body_bytes
    if _announced(request) > most:
        raise _too_large(most)


def _announced(request: Request) -> int:
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() else 0


def _too_large(most: int) -> Problem:
    return Problem("too_large", f"the body has more than {most} bytes")


def router(tag: str) -> APIRouter:
    """A family of routes: one module each, listed in `asgi_app.FAMILIES`. Operation ids are the functions' names."""
    return APIRouter(tags=[tag], route_class=GuardedRoute, generate_unique_id_function=lambda route: route.name)


def operation(
    permission: str,
    *problems: str,
    status: int = 200,
    model: Any = None,
    answers: Mapping[int, Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Arguments for a route's decorator: who may use it, and its possible answers.

    `problems`: codes besides those that every route, or every route with a body, has. `model`: the body on success.
    `answers`: further answers. An endpoint with status 204 returns None.

        @routes.get("/v1/things/{id}", **operation("jobs:read", "not_found", model=Thing))
        async def get_thing(request: ApiRequest, id: str) -> Response: ...
    """
    codes = ["invalid", *problems]
    if permission != PUBLIC:
        codes = ["unauthenticated", "forbidden", "limited", "busy", "unavailable", *codes]
    return {
        "status_code": status,
        "response_class": Response if status == HTTPStatus.NO_CONTENT else JSONResponse,
        "response_model": model,
        "responses": {**_problem_answers(codes), **(answers or {})},
        "openapi_extra": {PERMISSION: permission, **(extra or {})},
    }


def _problem_answers(codes: list[str]) -> dict[int | str, dict[str, Any]]:
    answers: dict[int | str, dict[str, Any]] = {}
    for code in dict.fromkeys(codes):
        status, meaning = PROBLEMS[code]
        answer = answers.setdefault(
            status,
            {
                "description": "",
                "content": {
                    "application/problem+json": {
                        "schema": {"$ref": "#/components/schemas/Problem"},
                        "examples": {},
                    }
                },
            },
        )
        answer["description"] = f"{answer['description']} `{code}`: {meaning}".strip()
        answer["content"]["application/problem+json"]["examples"][code] = {"value": Problem(code, meaning).document()}
    return answers


def read_job_id(text: str) -> int:
    """A job's id in a path. A malformed id is answered like a missing one."""
    try:
        return parse_id(text)
    except InvalidId as error:
        raise Problem("not_found", f"job {text[:40]} does not exist") from error


def read_number(what: str, text: str, todo: str = "") -> int:
    """The same for things whose id is a number. Raises Problem `not_found`."""
    # Length first: Python refuses to parse thousands of digits.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ID)) and 0 < int(text) <= MAX_ID):
        raise Problem("not_found", f"{what} {text[:40]!r} does not exist{todo}")
    return int(text)


def json_response(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON text, usually from the database, passed on as it is."""
    return Response(text, status, headers=headers, media_type="application/json")


def value_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return json_response(json.dumps(value), status, headers)


def list_response(items: Sequence[str], next_cursor: str | int | None = None) -> Response:
    """JSON texts as `{"items": …, "next_cursor": …}`."""
    return page_response(f"[{', '.join(items)}]", next_cursor)


def page_response(items: str, next_cursor: str | int | None) -> Response:
    """The same for the text of a JSON array."""
    cursor = "null" if next_cursor is None else f'"{next_cursor}"'
    return json_response(f'{{"items": {items}, "next_cursor": {cursor}}}')
