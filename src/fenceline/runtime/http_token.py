"""The runner's token: given as text, or in a file that may change while the runner runs."""

import asyncio
import logging
import os
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from fenceline.errors import FencelineError
from fenceline.model.secret_file import write_secret

if TYPE_CHECKING:
    from fenceline.runtime.http_client import Client

log = logging.getLogger("fenceline.runner")

#: How long after a failed rotation it is tried again.
PAUSE_SECONDS = 60.0
OVERLAP_SECONDS = 300


class Token(httpx.Auth):
    """Adds the current token to every request. The process that rotates it writes the file, others read it again."""

    def __init__(self, text: str, path: Path | None = None) -> None:
        """`path`: the file that the text was read from."""
        self._text = text
        self.path = path
        self._seen = self._stamp()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Token":
        """The inverse of `to_environment`."""
        path = environment.get("FENCELINE_TOKEN_FILE")
        return cls(environment["FENCELINE_TOKEN"], Path(path) if path else None)

    def to_environment(self) -> dict[str, str]:
        return {"FENCELINE_TOKEN": self.current(), "FENCELINE_TOKEN_FILE": "" if self.path is None else str(self.path)}

    def current(self) -> str:
        stamp = self._stamp()
        if self.path is not None and stamp not in (None, self._seen):
            try:
                self._text = self.path.read_text().strip() or self._text
                self._seen = stamp
            except OSError as error:
                log.warning("%s cannot be read (%s): going on with the previous token", self.path, error)
        return self._text

    def replace(self, text: str) -> None:
        """Use another token from now on."""
        self._text = text
        if self.path is not None:
            write_secret(self.path, text)
            self._seen = self._stamp()

    @property
    def age_seconds(self) -> float:
        """The age of its file."""
        return 0.0 if self.path is None else max(time.time() - self.path.stat().st_mtime, 0.0)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self.current()}"
        yield request

    def _stamp(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


class Rotation:
    """Exchanges the token for a new one from time to time, and writes that to the file."""

    def __init__(self, client: "Client", token: Token, *, every_seconds: float) -> None:
        if token.path is None:
            raise ValueError("a token is rotated only where a file keeps it: give --token-file")
        self._client = client
        self._token = token
        self._every_seconds = every_seconds

    async def run(self) -> None:
        await asyncio.sleep(max(self._every_seconds - self._token.age_seconds, 0.0))
        while True:
            try:
                await self.run_once()
            except (FencelineError, OSError) as error:
                log.warning("the token could not be replaced: %s", error)
                await asyncio.sleep(min(PAUSE_SECONDS, self._every_seconds))
                continue
            await asyncio.sleep(self._every_seconds)

    async def run_once(self) -> None:
        """One exchange, after a check that the file can be written: the old token ends with it."""
        path = self._token.path
        if path is not None and not os.access(path.parent, os.W_OK):
            raise PermissionError(f"{path} cannot be written")
        body = f'{{"overlap_seconds": {OVERLAP_SECONDS}}}'
        answer = await self._client.ask_once("POST", "/v1/tokens/rotate", body)
        self._token.replace(answer["token"])
        log.info("the token was replaced by token %s", answer["id"])
