"""Hears notifications on a connection of its own, and makes sure that it can hear.

Half-open sockets and poolers in transaction mode look alike: LISTEN succeeds and nothing ever comes. So a canary is
sent from time to time, over another connection: one that notifies itself hears itself even behind a pooler. Whether
it hears or not, workers poll: a notification only makes it quicker.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fenceline.database import calls
from fenceline.database.call import Call

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

log = logging.getLogger("fenceline.listener")

CANARY_SECONDS = 30.0
HEARD_WITHIN_SECONDS = 3.0
#: Two silences in a row on fresh connections mean that notifications cannot come here; then it is tried rarely.
DEAF_AFTER = 2
DEAF_SECONDS = 600.0


class Listener:
    def __init__(
        self,
        connect: "Callable[[], Awaitable[Connection]]",
        channels: dict[str, Callable[[str], None]],
        *,
        on_connect: Callable[[], None],
        send: Callable[[Call[None]], Awaitable[None]],
        turn: asyncio.Lock | None = None,
    ) -> None:
        """`send` runs a call on another connection than the one that listens. `turn`: of a connection that others use
        too, held for every statement on it; it is theirs to make anew.
        """
        self._turn = turn or asyncio.Lock()
        self._connect = connect
        self._channels = channels
        self._on_connect = on_connect
        self._send = send
        self._heard = asyncio.Event()
        self._silences = 0

    @property
    def deaf(self) -> bool:
        return self._silences >= DEAF_AFTER

    async def run(self) -> None:
        pause = 0.1
        while True:
            connection: Connection | None = None
            try:
                connection = await self._connect()
                await self._listen(connection)
                self._on_connect()  # what was committed while nobody listened
                await self._stay(connection)
                pause = 0.1
            except Exception as error:  # noqa: BLE001 - whoever listens can do without, but not without its other loops
                log.warning("listener: connection lost (%s: %s), polling meanwhile", type(error).__name__, error)
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep((DEAF_SECONDS if self.deaf else pause) * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(pause * 2, 5.0)

    async def _listen(self, connection: "Connection") -> None:
        async with self._turn:
            for channel, on_notify in self._channels.items():
                await connection.add_listener(channel, self._relay(on_notify))
            await connection.add_listener(calls.workers.CANARY, self._relay(lambda _payload: self._heard.set()))

    @staticmethod
    def _relay(on_notify: Callable[[str], None]) -> Callable[[Any, int, str, object], None]:
        return lambda _connection, _pid, _channel, payload: on_notify(str(payload))

    async def _stay(self, connection: "Connection") -> None:
        """Until the connection breaks, or nothing is heard on it."""
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _connection: closed.set())
        while not connection.is_closed():
            self._heard.clear()
            await self._send(calls.workers.send_canary(uuid4().hex))
            try:
                async with asyncio.timeout(HEARD_WITHIN_SECONDS):
                    await self._heard.wait()  # anybody's canary proves that the line is open
            except TimeoutError:
                await self._go_deaf(connection)
                return
            self._silences = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CANARY_SECONDS):
                    await closed.wait()

    async def _go_deaf(self, connection: "Connection") -> None:
        self._silences += 1
        if self._silences == DEAF_AFTER:
            log.warning("listener: notifications do not arrive here (behind a pooler?), polling instead")
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1.0), self._turn:
                await connection.execute("unlisten *")  # as good as it gets: the pooler may pick another session
