"""Requests of runners and commands to the server. Refusals become the exceptions that callers over SQL get.

`ask` repeats a request until it is answered. Every request of a runner is safe to repeat: a claim because of its
request id, a finish because an exact repeat gets the same answer, log lines because of their offset, and so on.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx
from pydantic_core import from_json

from fenceline.errors import FencelineError, RefusedError
from fenceline.errors.sqlstates import refused_over_http
from fenceline.runtime.http_tls import RunnerTls
from fenceline.runtime.http_token import Token
from fenceline.runtime.outage import Outage

log = logging.getLogger("fenceline.runner")

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 5.0
MAX_CONNECTIONS = 50


class ServerAway(FencelineError):
    """The server cannot be reached, or cannot answer now. The request may or may not have been carried out."""

    def __init__(
        self,
        message: str,
        *,
        status: str | None = None,
        problem: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        """`status`: such as "503 Service Unavailable", if it answered; `problem`: the body, if it is one of ours."""
        super().__init__(message)
        self.status = status
        self.problem = problem
        self.retry_after = retry_after


class TokenRefused(FencelineError):
    """The token is unknown, expired or revoked, or may not run jobs."""


class ServerTooOld(FencelineError):
    """The server is older than the runner and does not know its requests."""


class Client:
    def __init__(
        self,
        url: str,
        token: str | Token | None,
        *,
        tls: RunnerTls | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._connect_seconds = connect_seconds
        self._outage = Outage("server", log)
        self._http = httpx.AsyncClient(
            base_url=url,
            auth=Token(token) if isinstance(token, str) else token,
            headers={"Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
            transport=transport,
            verify=True if tls is None else tls.context(),
        )

    async def ask(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        attempt_id: UUID | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> Any:
        """The answer, however long the server is unreachable. Raises RefusedError, TokenRefused."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                answer = await self.ask_once(method, path, body, attempt_id=attempt_id, answer_seconds=answer_seconds)
            except ServerAway as error:
                self._outage.begin(f"{method} {path}: {error}")
                wait = pause if error.retry_after is None else max(pause, error.retry_after)
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                pause = min(pause * 2, MAX_PAUSE_SECONDS)
            else:
                self._outage.end()
                return answer

    async def ask_once(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        attempt_id: UUID | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> Any:
        """As `ask`, but tries once and raises ServerAway."""
        named = {} if attempt_id is None else {"Fenceline-Attempt": str(attempt_id)}
        timeout = httpx.Timeout(answer_seconds, connect=min(self._connect_seconds, answer_seconds), pool=None)
        try:
            response = await self._http.request(
                method,
                path,
                params=query,
                content=None if body is None else body.encode(),
                headers={**named, **(headers or {})},
                timeout=timeout,
            )
        except httpx.TransportError as error:
            raise ServerAway(f"the server does not answer ({type(error).__name__})") from error
        return read_answer(response)

    async def close(self) -> None:
        await self._http.aclose()


def read_answer(response: httpx.Response) -> Any:
    """The body of a response. Raises RefusedError, TokenRefused, ServerAway."""
    if response.is_success:
        return from_json(response.content) if response.content else None
    problem: Mapping[str, Any] = {}
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        problem = from_json(response.content)
    code, detail = str(problem.get("code", "")), str(problem.get("detail", f"status {response.status_code}"))
    if response.is_server_error or code == "limited" or not problem:
        after = response.headers.get("retry-after", "")
        raise ServerAway(
            f"the server answers {response.status_code}: {detail}",
            retry_after=float(after) if after.isdigit() else None,
            status=f"{response.status_code} {response.reason_phrase}",
            problem=problem or None,
        )
    match code:
        case "unauthenticated":
            raise TokenRefused(detail)
        case "forbidden":
            raise Forbidden(detail)
    raise refused_over_http(problem)


class Forbidden(RefusedError):
    """The token may not do this."""

    code = "forbidden"
