"""Requests of commands to a server, with errors worded for a person at a command line."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fenceline.database.decoding import read_record
from fenceline.errors import FencelineError
from fenceline.errors.sqlstates import refused_over_http

if TYPE_CHECKING:
    from fenceline.runtime.http_client import ServerAway

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0


class ServerUnavailable(FencelineError):
    """The server cannot be reached, or is no Fenceline server."""


class NotAllowed(FencelineError):
    """The server does not accept the token, or the token's role may not do this."""


class RemoteServer:
    def __init__(self, url: str, token: str | None) -> None:
        try:
            from fenceline.runtime.http_client import Client
        except ImportError as error:
            raise FencelineError("--url needs httpx: pip install 'fenceline[cli]'") from error
        self._url = url.rstrip("/")
        self._client = Client(self._url, token or None, connect_seconds=TIMEOUT_SECONDS)

    async def close(self) -> None:
        await self._client.close()

    async def records(self, kind: type[T], path: str) -> list[T]:
        """All pages of a list."""
        found: list[T] = []
        query: dict[str, Any] = {}
        while True:
            page = await self.call("GET", path, query=query)
            found += [read_record(kind, row) for row in page["items"]]
            query = {"cursor": page.get("next_cursor")}
            if query["cursor"] is None:
                return found

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        from httpx import InvalidURL

        from fenceline.runtime.http_client import Forbidden, ServerAway, TokenRefused

        try:
            text = None if body is None else json.dumps(body)
            return await self._client.ask_once(
                method, path, text, query=query, headers=headers, answer_seconds=TIMEOUT_SECONDS
            )
        except ServerAway as error:
            raise self._away(error) from error
        except InvalidURL as error:
            raise self._unreachable(error) from error
        except TokenRefused as error:
            raise NotAllowed(f"{error}: give a valid token with --token (or FENCELINE_TOKEN)") from error
        except Forbidden as error:
            raise NotAllowed(f"{error}: this token's role may not do that; use a token of another role") from error

    def _away(self, error: "ServerAway") -> FencelineError:
        if error.problem is not None:  # the server answered, and said why not: it may be draining
            return refused_over_http(error.problem)
        if error.__cause__ is not None:
            return self._unreachable(error.__cause__)
        return ServerUnavailable(f"{self._url} answered {error.status}, which no Fenceline server says: check --url")

    def _unreachable(self, error: BaseException) -> FencelineError:
        return ServerUnavailable(
            f"the server {self._url} cannot be reached ({str(error) or type(error).__name__}): "
            "check --url (or FENCELINE_URL), and that `fenceline server` is running there"
        )


def refuse(option: str, value: object, why: str) -> None:
    """Refuse an option that a server does not take."""
    if value is not None:
        raise FencelineError(f"{option} is not available over --url ({why}): leave it out, or use --dsn")


def segment(name: str) -> str:
    """A name as a segment of a path."""
    from urllib.parse import quote

    return quote(name, safe="")
