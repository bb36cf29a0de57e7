"""Routes that are closed unless they say who may come in, and requests that are read strictly.

Each route names its permission (`operation("jobs:read")`), or says `PUBLIC`; one that does neither is a mistake that
shows when the app is made. Before anything of a request is looked at: token (401), rate (429), permission (403); then
media type (415), size (413), and only then what FastAPI does.
"""

import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic_core import from_json

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

PERMISSION = "x-permission"
PUBLIC = "public"
#: For everybody who is known, whatever they may do.
SIGNED_IN = "signed_in"
#: The permission of those who run jobs, from whom a client certificate may be asked too.
RUNNING = "runners:claim"

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class ApiRequest(Request):
    """What an endpoint gets: who asks, and the way to the database."""

    @property
    def server(self) -> "Server":
        server: Server = self.app.state.server
        return server

    @property
    def database(self) -> TenantDatabase:
        """For who asks; those who need no token share one."""
        identity: Identity | None = getattr(self.state, "identity", None)
        return self.server.turns.of("" if identity is None else identity.tenant)

    @property
    def identity(self) -> Identity:
        """Who asks; only routes with a permission have one."""
        identity: Identity = self.state.identity
        return identity

    async def admit(self, permission: str) -> None:
        """Find out who asks, and let them in. Raises Problem `unauthenticated`, `limited`, `forbidden`."""
        credentials = self.headers.get("authorization") or self.session_secret
        with self.suspecting(credentials):
            await self._admit(permission)
        self.server.suspicion.admitted(credentials)

    @contextlib.contextmanager
    def suspecting(self, credentials: str | None = None) -> Iterator[None]:
        """Counts refusals within the block against the address. Raises Problem `limited`."""
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
        """The cookie of a person's browser. What else comes with the request is stronger."""
        return None if "authorization" in self.headers else cookie.read(self)

    @property
    def host(self) -> str:
        """The address that the request came from; behind a trusted proxy, the one that it names."""
        return self.client.host if self.client else ""

    @property
    def has_certificate(self) -> bool:
        connection = self.scope.get("extensions", {}).get(CONNECTION)
        return connection is not None and connection.has_certificate

    async def stream(self) -> AsyncGenerator[bytes, None]:
        async for chunk in self.bounded_stream(self.server.settings.max_body_bytes):
            yield chunk

    async def bounded_stream(self, most: int) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises Problem `too_large`."""
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
        # Not the standard library's: strict about NaN's relatives in numbers, quick, and safe with deep nesting.
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

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        extra = self.openapi_extra or {}
        permission = str(extra.get(PERMISSION))
        media_types = tuple(extra.get("requestBody", {}).get("content", ("application/json",)))
        path = self.path
        known = frozenset(_query_names(self.dependant))
        takes_body = self.body_field is not None or "requestBody" in extra

        async def guarded(request: Request) -> Response:
            strict = ApiRequest(request.scope, request.receive)
            started = time.perf_counter()
            status = 500
            try:
                if permission != PUBLIC:
                    await strict.admit(permission)
                _check_path(strict)
                _check_query(strict, known)
                if request.method in _BODY_METHODS:
                    _check_body(strict, media_types)
                    if not takes_body:
                        await _check_no_body(strict)
                response = hidden_from(strict, await handle(strict))
                status = response.status_code
            except Exception as error:
                problem = problem_of(error)
                if problem is not None:
                    status = problem.status_code
                raise
            finally:
                strict.server.metrics.count(request.method, path, status, time.perf_counter() - started)
            return response

        return guarded


def hidden_from(request: ApiRequest, response: Response) -> Response:
    """The answer as it is for who asks."""
    identity: Identity | None = getattr(request.state, "identity", None)
    if identity is None or not identity.hides_args or response.media_type != "application/json":
        return response
    hidden = hide(bytes(response.body))
    kept = {name: value for name, value in response.headers.items() if name != "content-length"}
    return Response(hidden, response.status_code, headers=kept, media_type=response.media_type)


def _check_path(request: ApiRequest) -> None:
    """No name has a zero character, and the database would not take it for a question about one."""
    if any("\0" in str(value) for value in request.path_params.values()):
        raise Problem("not_found", "there is nothing at this path: names cannot contain a zero character")


def _query_names(dependant: Dependant) -> Iterator[str]:
    """What an endpoint, and what it depends on, takes in the query string."""
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
    """Media type and announced size; a body that only turns out to be too large is cut off while it is read."""
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
    """A family of routes: one module each, listed in `asgi_app.ROUTERS`. Clients have the functions' names."""
    return APIRouter(tags=[tag], route_class=GuardedRoute, generate_unique_id_function=lambda route: route.name)


def operation(
    permission: str,
    *problems: str,
    status: int = 200,
    model: Any = None,
    answers: Mapping[int, Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a route's decorator takes: who may come in, and which answers there are.

    `problems` are codes beside those that every route has; `model` is the body of success, `answers` further ones.

        @routes.get("/v1/things/{id}", **operation("jobs:read", "not_found", model=Thing))
        async def get_thing(request: ApiRequest, id: str) -> Response: ...
    """
    codes = [*problems, "invalid"]
    if permission != PUBLIC:
        codes = ["unauthenticated", "forbidden", "limited", "busy", "unavailable", *codes]
    return {
        "status_code": status,
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
    """A job's id from a path; a malformed one is answered like a missing one."""
    try:
        return parse_id(text)
    except InvalidId as error:
        raise Problem("not_found", f"job {text[:40]} does not exist") from error


def json_response(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON text from the database, passed on as it is."""
    return Response(text, status, headers=headers, media_type="application/json")


def list_response(items: Sequence[str], next_cursor: str | int | None = None) -> Response:
    """A list of JSON texts as `{"items": …, "next_cursor": …}`."""
    return page_response(f"[{', '.join(items)}]", next_cursor)


def page_response(items: str, next_cursor: str | int | None) -> Response:
    """The same for items that are one JSON array."""
    cursor = "null" if next_cursor is None else f'"{next_cursor}"'
    return json_response(f'{{"items": {items}, "next_cursor": {cursor}}}')
