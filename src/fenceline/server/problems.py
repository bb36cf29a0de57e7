"""Every error as RFC 9457 problem+json with a `code`: the one place that maps exceptions to HTTP statuses.

To add a code: an entry in `PROBLEMS`, and either raise `Problem(code, …)` or map an exception in `problem_of`.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException as StarletteHTTPException

from fenceline import errors
from fenceline.server.hiding import shown_path

log = logging.getLogger("fenceline.server")

RETRY_SECONDS = 5
MEDIA_TYPE = "application/problem+json"

#: code → status and meaning. Codes are for programs and never change; the detail is for people.
PROBLEMS: dict[str, tuple[int, str]] = {
    "unauthenticated": (401, "The token is missing, unknown, expired or revoked."),
    "forbidden": (403, "The token's role does not allow this."),
    "not_found": (404, "There is no such thing, or it is not yours to see."),
    "method_not_allowed": (405, "The path has other methods."),
    "timeout": (408, "The request did not come in time; the connection is closed."),
    "stale_attempt": (409, "The attempt is gone; nothing was changed."),
    "resource_locked": (409, "Another job holds the resource; `holder` names it."),
    "wrong_status": (409, "The job's status does not allow this; `job_status` names it."),
    "conflict": (409, "It exists already, or is in use."),
    "key_taken": (409, "The dedupe key or idempotency key belongs to a job that is not yours to see."),
    "too_large": (413, "The body, or a part of it, is too large."),
    "unsupported_media_type": (415, "The body must be application/json."),
    "head_too_large": (431, "The request line and the headers are too large; the connection is closed."),
    "malformed": (400, "This is not HTTP/1.1; the connection is closed."),
    "invalid": (422, "The request breaks a rule; `errors` names the fields where that is known."),
    "idempotency_mismatch": (422, "The same Idempotency-Key came before with another request."),
    "limited": (
        429,
        "Too much from this token, tenant or address, or too many unfinished jobs of `tenant`; wait for Retry-After.",
    ),
    "internal": (500, "A mistake of the server's; it is in its log."),
    "busy": (503, "It would have taken too long now: something is locked, slow or used up. Nothing was changed."),
    "draining": (503, "The system accepts no new jobs now."),
    "unavailable": (503, "The database does not answer."),
    "finalizer_missing": (503, "The kind has a finalizer, and this server was started without the app that has it."),
}
_WITH_RETRY = ("limited", "busy", "draining", "unavailable", "finalizer_missing")


class Problem(HTTPException):
    """An error answer. `extensions` are further members of the document.

    raise Problem("not_found", f"lane {name!r} does not exist")
    """

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **extensions: Any) -> None:
        defaults = {"Retry-After": str(RETRY_SECONDS)} if code in _WITH_RETRY else {}
        if code == "unauthenticated":
            defaults["WWW-Authenticate"] = "Bearer"
        super().__init__(PROBLEMS[code][0], detail, headers={**defaults, **(headers or {})})
        self.code = code
        self.extensions = extensions

    def document(self) -> dict[str, Any]:
        return {
            "type": f"urn:fenceline:problem:{self.code}",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "code": self.code,
            "detail": self.detail,
            **self.extensions,
        }

    def response(self) -> Response:
        return Response(json.dumps(self.document()), self.status_code, headers=self.headers, media_type=MEDIA_TYPE)

    def http_text(self) -> bytes:
        """The whole answer, as the last one of a connection whose request never reached the application."""
        body = json.dumps(self.document())
        headers = {
            "content-type": MEDIA_TYPE,
            "content-length": str(len(body)),
            "connection": "close",
            **(self.headers or {}),
        }
        lines = [f"HTTP/1.1 {self.status_code} {HTTPStatus(self.status_code).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", body]).encode()


def invalid(field: str, message: str, detail: str | None = None) -> Problem:
    """For one field. `detail`: for when the message alone says too little."""
    return Problem("invalid", detail or f"{field}: {message}", errors=[{"field": field, "message": message}])


def missing(what: str, name: str) -> Problem:
    return Problem("not_found", f"{what} {name[:80]!r} does not exist")


#: Refusal of the state machine → code. All others are `invalid`, with the refusal's own code as `reason`.
_REFUSED: dict[type[errors.RefusedError], str] = {
    errors.NotFound: "not_found",
    errors.UnknownRole: "not_found",
    errors.UnknownToken: "not_found",
    errors.UnknownTrigger: "not_found",
    errors.UnknownHook: "not_found",
    errors.UnknownSchedule: "not_found",
    errors.Replayed: "conflict",
    errors.WrongStatus: "wrong_status",
    errors.StaleAttempt: "stale_attempt",
    errors.ResourceLocked: "resource_locked",
    errors.LaneInUse: "conflict",
    errors.AlreadyExists: "conflict",
    errors.LaneExists: "conflict",
    errors.RoleInUse: "conflict",
    errors.TooLarge: "too_large",
    errors.Draining: "draining",
    errors.Limited: "limited",
    errors.NotYours: "forbidden",
    errors.UnknownRunner: "not_found",
    errors.WorkerLost: "not_found",
    errors.ForeignAttempt: "forbidden",
    errors.OwnApproval: "forbidden",
    errors.IdentityRefused: "forbidden",
    errors.KeyTaken: "key_taken",
    errors.IdempotencyMismatch: "idempotency_mismatch",
}
#: The member of the document that names the culprit.
_CULPRITS = {"resource_locked": "holder", "wrong_status": "job_status", "limited": "tenant"}


def problem_of(error: Exception) -> Problem | None:  # noqa: C901, PLR0911 - a table of cases
    """The answer for an exception; None if it is a bug of ours."""
    match error:
        case Problem():
            return error
        case errors.RefusedError():
            code = _REFUSED.get(type(error), "invalid")
            extensions: dict[str, Any] = {"reason": error.code} if code in ("invalid", "conflict", "forbidden") else {}
            if error.detail is not None and code in _CULPRITS:
                extensions[_CULPRITS[code]] = error.detail
            return Problem(code, str(error), **extensions)
        case errors.InvalidArgs():
            return Problem("invalid", str(error), reason=error.code, errors=_args_errors(error))
        case errors.InvalidId():
            return Problem("not_found", str(error))
        case RequestValidationError():
            fields = [_field_error(item, error.body) for item in error.errors()]
            return Problem("invalid", _sentence(fields), errors=fields)
        case errors.DatabaseBusy():
            return Problem("busy", str(error))
        case errors.DatabaseUnavailable() | errors.ConnectionLost():
            return Problem("unavailable", str(error))
        case StarletteHTTPException(status_code=HTTPStatus.NOT_FOUND):
            return Problem("not_found", "there is nothing at this path: see /openapi.json")
        case StarletteHTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            return Problem("method_not_allowed", "this path has other methods", headers=error.headers)
        case StarletteHTTPException(status_code=HTTPStatus.BAD_REQUEST):
            return Problem("invalid", str(error.detail))
    return None


def _field_error(item: Mapping[str, Any], body: Any) -> dict[str, str]:
    where, *path = item["loc"] or ("body",)
    if where == "body":
        path = _sent_path(path, body, is_missing=item["type"] == "missing")
    name = ".".join(str(part) for part in path) or str(where)
    return {"field": name, "message": str(item["msg"]).removeprefix("Value error, ")}


def _sent_path(path: list[Any], body: Any, *, is_missing: bool) -> list[Any]:
    """The place in what was sent: without pydantic's words for the members of a union (`str`, `HashBody`)."""
    sent = []
    for part in path[:-1] if is_missing else path:
        if (isinstance(body, dict) and part in body) or (isinstance(body, list) and isinstance(part, int)):
            sent.append(part)
            body = body[part]
    return [*sent, *path[-1:]] if is_missing else sent


def _args_errors(error: errors.InvalidArgs) -> list[dict[str, str]]:
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return [{"field": "args", "message": str(error)}]
    return [
        {"field": ".".join(str(part) for part in ("args", *item["loc"])), "message": item["msg"]}
        for item in cause.errors(include_url=False, include_context=False, include_input=False)
    ]


def _sentence(fields: Sequence[Mapping[str, str]]) -> str:
    return "; ".join(f"{item['field']}: {item['message']}" for item in fields[:10])


async def _answer(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem is None:
        log.error("a request failed", exc_info=error)
        problem = Problem("internal", "something went wrong in the server; its log has the details")
    request.app.state.server.refusals.add(
        request.client.host if request.client else "",
        problem,
        asked=f"{request.method} {shown_path(request.scope['path'])}",
        who=getattr(request.state, "identity", None),
    )
    return problem.response()


def install(app: FastAPI) -> None:
    """Answer every exception with a problem."""
    for kind in (StarletteHTTPException, RequestValidationError, errors.FencelineError, errors.InvalidId, Exception):
        app.add_exception_handler(kind, _answer)


def answer_problems(app: Starlette) -> None:
    """In your own application: answer Fenceline's errors the way its server does.

    A missing job is 404, a locked resource 409, a draining system 503, each with its document; other exceptions are
    answered as before.

        web = FastAPI()
        answer_problems(web)
    """
    for kind in (errors.FencelineError, errors.InvalidId):
        app.add_exception_handler(kind, _answer_elsewhere)


async def _answer_elsewhere(_request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem is None:
        raise error
    return problem.response()
