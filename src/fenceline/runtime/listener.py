"""Listens for notifications on a connection of its own, and checks that they arrive.

A half-open socket and a pooler in transaction mode look alike: LISTEN succeeds, and nothing ever arrives. So a canary
is sent from time to time, over another connection: a session that notifies itself hears itself even behind a pooler.
Workers poll in any case; notifications only make them quicker.
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
from fenceline.runtime.waiting import wait_for_event

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

log = logging.getLogger("fenceline.listener")

CANARY_SECONDS = 30.0
HEARD_WITHIN_SECONDS = 3.0
#: If two new connections in a row stay silent, notifications cannot get here: try only rarely from then on.
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
        """`send` runs a call on a connection other than the one that listens. `turn`: the lock of a connection that
        others use too, held for every statement; reconnecting is their business.
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
                self._on_connect()  # to catch up with what was committed meanwhile
                await self._stay(connection)
                pause = 0.1
            except Exception as error:  # noqa: BLE001 - losing the listener must not end the other loops
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
        """Return when the connection breaks, or nothing arrives on it."""
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _connection: closed.set())
        while not connection.is_closed():
            self._heard.clear()
            await self._send(calls.workers.send_canary(uuid4().hex))
            # Anybody's canary proves that notifications arrive.
            if not await wait_for_event(self._heard, HEARD_WITHIN_SECONDS):
                await self._go_deaf(connection)
                return
            self._silences = 0
            await wait_for_event(closed, CANARY_SECONDS)

    async def _go_deaf(self, connection: "Connection") -> None:
        self._silences += 1
        if self._silences == DEAF_AFTER:
            log.warning("listener: notifications do not arrive here (behind a pooler?), polling instead")
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1.0), self._turn:
                await connection.execute("unlisten *")  # the best we can do: the pooler may pick another session
