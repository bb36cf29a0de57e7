"""Routes that are closed unless they say who may come in, and requests that are read strictly.

Each route names its permission (`operation("jobs:read")`), or says `PUBLIC`; one that does neither is a mistake that
shows when the app is made. Before anything of a request is looked at: token (401), rate (429), permission (403); then
media type (415), size (413), and only then what FastAPI does.
"""

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json

from fenceline.client.caller import Caller
from fenceline.model.identity import Identity
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.server.problems import PROBLEMS, Problem, problem_of

if TYPE_CHECKING:
    from fenceline.server.app import Server

PERMISSION = "x-permission"
PUBLIC = "public"

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class ApiRequest(Request):
    """What an endpoint gets: who asks, and the way to the database."""

    @property
    def server(self) -> "Server":
        server: Server = self.app.state.server
        return server

    @property
    def caller(self) -> Caller:
        return self.server.caller

    @property
    def identity(self) -> Identity:
        """Who asks; only routes with a permission have one."""
        identity: Identity = self.state.identity
        return identity

    async def admit(self, permission: str) -> None:
        """Find out who asks, and let them in. Raises Problem `unauthenticated`, `limited`, `forbidden`."""
        identity = await self.server.identify(self)
        self.server.rate_limit.take(identity)
        if not identity.may(permission):
            raise Problem("forbidden", f"role {identity.role!r} does not have the permission {permission}")
        self.state.identity = identity

    async def stream(self) -> AsyncGenerator[bytes, None]:
        most = self.server.settings.max_body_bytes
        read = 0
        async for chunk in super().stream():
            read += len(chunk)
            if read > most:
                raise _too_large(most)
            yield chunk

    async def json(self) -> Any:
        try:
            # Not the standard library's: strict about NaN's relatives in numbers, quick, and safe with deep nesting.
            return from_json(await self.body(), allow_inf_nan=False)
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
        permission = str((self.openapi_extra or {}).get(PERMISSION))
        path = self.path

        async def guarded(request: Request) -> Response:
            strict = ApiRequest(request.scope, request.receive)
            started = time.perf_counter()
            status = 500
            try:
                if permission != PUBLIC:
                    await strict.admit(permission)
                _check_path(strict)
                if request.method in _BODY_METHODS:
                    _check_body(strict)
                response = await handle(strict)
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


def _check_path(request: ApiRequest) -> None:
    """No name has a zero character, and the database would not take it for a question about one."""
    if any("\0" in str(value) for value in request.path_params.values()):
        raise Problem("not_found", "there is nothing at this path: a name has no zero character")


def _check_body(request: ApiRequest) -> None:
    """Media type and announced size; a body that only turns out to be too large is cut off while it is read."""
    length = request.headers.get("content-length", "")
    has_body = "transfer-encoding" in request.headers or (length.isdigit() and int(length) > 0)
    if not has_body:
        return
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem("unsupported_media_type", f"the body is {media_type or 'of no type'}: send application/json")
    most = request.server.settings.max_body_bytes
    if length.isdigit() and int(length) > most:
        raise _too_large(most)


def _too_large(most: int) -> Problem:
    return Problem("too_large", f"the body has more than {most} bytes")


def router(tag: str) -> APIRouter:
    """A family of routes: one module each, listed in `app.ROUTERS`."""
    return APIRouter(tags=[tag], route_class=GuardedRoute)


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
    codes = [*problems]
    if permission != PUBLIC:
        codes = ["unauthenticated", "forbidden", "limited", "unavailable", *codes]
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


def list_response(items: Sequence[str], next_cursor: str | None = None) -> Response:
    """A list of JSON texts as `{"items": …, "next_cursor": …}`."""
    cursor = "null" if next_cursor is None else f'"{next_cursor}"'
    return json_response(f'{{"items": [{", ".join(items)}], "next_cursor": {cursor}}}')
