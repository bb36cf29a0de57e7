"""Hears notifications on a connection of its own, and makes sure that it can hear.

A half-open socket and a pooler in transaction mode look alike: LISTEN succeeds and nothing ever comes. So the listener
sends itself a canary from time to time. Whether it hears or not, the claimer polls: a notification only makes it
quicker.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fenceline.client.caller import is_connection_failure

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

log = logging.getLogger("fenceline.worker")

CANARY = "fenceline_canary"
CANARY_SECONDS = 30.0
HEARD_WITHIN_SECONDS = 5.0
#: Between tries to hear again, once it is clear that this connection cannot (a pooler).
DEAF_SECONDS = 60.0


class Listener:
    def __init__(
        self,
        connect: "Callable[[], Awaitable[Connection]]",
        channels: dict[str, Callable[[str], None]],
        *,
        on_connect: Callable[[], None],
    ) -> None:
        self._connect = connect
        self._channels = channels
        self._on_connect = on_connect
        self._heard = asyncio.Event()
        self.deaf = False

    async def run(self) -> None:
        pause = 0.1
        while True:
            connection: Connection | None = None
            try:
                connection = await self._connect()
                await self._listen(connection)
                pause = 0.1
                self._on_connect()  # what was committed while nobody listened
                await self._stay(connection)
            except Exception as error:
                if not is_connection_failure(error):
                    raise
                log.warning("listener: connection lost (%s), polling meanwhile", error)
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep((DEAF_SECONDS if self.deaf else pause) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(pause * 2, 5.0)

    async def _listen(self, connection: "Connection") -> None:
        for channel, hear in self._channels.items():
            await connection.add_listener(channel, self._relay(hear))
        await connection.add_listener(CANARY, self._relay(lambda _payload: self._heard.set()))

    @staticmethod
    def _relay(hear: Callable[[str], None]) -> Callable[[Any, int, str, object], None]:
        return lambda _connection, _pid, _channel, payload: hear(str(payload))

    async def _stay(self, connection: "Connection") -> None:
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _connection: closed.set())
        while not connection.is_closed():
            self._heard.clear()
            await connection.execute(
                f"notify {CANARY}, '{uuid4().hex}'"
            )  # anybody's canary proves that the line is open
            try:
                async with asyncio.timeout(HEARD_WITHIN_SECONDS):
                    await self._heard.wait()
            except TimeoutError:
                if not self.deaf:
                    log.warning("listener: notifications do not arrive here (a pooler?), polling instead")
                self.deaf = True
                return
            if self.deaf:
                log.info("listener: notifications arrive again")
            self.deaf = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CANARY_SECONDS):
                    await closed.wait()
