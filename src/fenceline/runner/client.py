"""Requests to the server: repeated until they are answered, and refusals as the exceptions that SQL callers get.

Every request of a runner is safe to repeat: a claim by its request id, a finish because an exact repeat is answered
like the first, log lines by their offset, the rest by nature.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx
from pydantic_core import from_json

from fenceline.errors import FencelineError, NotFound, RefusedError, StaleAttempt, TooLarge, refused_as

log = logging.getLogger("fenceline.runner")

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
FIRST_PAUSE_SECONDS = 0.05
MOST_PAUSE_SECONDS = 5.0
MOST_CONNECTIONS = 50


class ServerAway(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """The server cannot be reached, or cannot answer now. What was asked may or may not have been done."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TokenRefused(FencelineError):  # noqa: N818 - as above
    """The token is unknown, expired or revoked, or may not run jobs: nothing can be done with it."""


class Client:
    def __init__(self, url: str, token: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS),
            transport=transport,
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
        """The answer, however long the server is away. Raises RefusedError, TokenRefused."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await self.ask_once(method, path, body, attempt_id=attempt_id, answer_seconds=answer_seconds)
            except ServerAway as error:
                log.warning("%s %s: %s, trying again", method, path, error)
                wait = pause if error.retry_after is None else max(pause, error.retry_after)
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                pause = min(pause * 2, MOST_PAUSE_SECONDS)

    async def ask_once(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        attempt_id: UUID | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> Any:
        """One try. Raises ServerAway too."""
        headers = {} if attempt_id is None else {"Fenceline-Attempt": str(attempt_id)}
        timeout = httpx.Timeout(answer_seconds, connect=min(CONNECT_SECONDS, answer_seconds), pool=None)
        try:
            response = await self._http.request(
                method, path, content=None if body is None else body.encode(), headers=headers, timeout=timeout
            )
        except httpx.TransportError as error:
            raise ServerAway(f"the server does not answer ({type(error).__name__})") from error
        return read_answer(response)

    async def close(self) -> None:
        await self._http.aclose()


def read_answer(response: httpx.Response) -> Any:
    """What the server said. Raises RefusedError, TokenRefused, ServerAway."""
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
        )
    if code == "unauthenticated":
        raise TokenRefused(detail)
    raise _refusal(code, detail, problem)


def _refusal(code: str, detail: str, problem: Mapping[str, Any]) -> RefusedError:
    match code:
        case "not_found":
            return NotFound(detail)
        case "too_large":
            return TooLarge(detail)
        case "stale_attempt":
            return StaleAttempt(detail)
        case "resource_locked" | "wrong_status":
            return refused_as(code, detail, problem.get("holder") or problem.get("job_status"))
        case "forbidden":
            return Forbidden(detail)
    return refused_as(str(problem.get("reason", code)), detail)


class Forbidden(RefusedError):  # noqa: N818 - as above
    """The token may not do this."""

    code = "forbidden"
