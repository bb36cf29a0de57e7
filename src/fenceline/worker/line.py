"""A connection that comes back: one statement at a time, repeated over reconnects until it is answered.

A half-open socket never answers, so a statement that takes longer than any of ours should is a broken connection.
Every call of a worker is safe to repeat: a claim by its request id, a finish because an exact repeat answers `already`.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from fenceline.client.caller import is_conflict, is_connection_failure
from fenceline.database.calls import Call
from fenceline.errors import ConnectionLost, refusal

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")

MOST_SECONDS = 5.0
ANSWER_SECONDS = 60.0


class Line:
    def __init__(
        self,
        name: str,
        connect: "Callable[[], Awaitable[Connection]]",
        *,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._name = name
        self._connect = connect
        self._answer_seconds = answer_seconds
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def call(self, call: Call[T]) -> T:
        pause = 0.05
        async with self._turn:
            while True:
                try:
                    async with asyncio.timeout(self._answer_seconds):
                        if self._connection is None or self._connection.is_closed():
                            self._connection = await self._connect()
                        rows = await self._connection.fetch(call.sql, *call.parameters)
                    return call.decode(rows)
                except asyncio.CancelledError:
                    self.close()
                    raise
                except Exception as error:
                    refused = refusal(error)
                    if refused is not None:
                        raise refused from error
                    what = f"{type(error).__name__}: {error}"
                    if is_connection_failure(error):
                        self.close()
                        if not call.repeatable:
                            raise ConnectionLost(f"the {self._name} connection broke: {what}") from error
                        log.warning("%s: the database does not answer (%s), trying again", self._name, what)
                    elif is_conflict(error) or _gave_up_waiting(error):
                        log.warning("%s: %s, trying again", self._name, what)
                    else:
                        raise
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                pause = min(pause * 2, MOST_SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _gave_up_waiting(error: Exception) -> bool:
    """Whether a timeout of the server's own, or an operator, ended the statement: it is undone, too."""
    return getattr(error, "sqlstate", None) in ("55P03", "57014")
