"""Sends due messages to a backend: after an enqueue, and in workers and servers.

None of them is essential: the database knows what is to be sent, and whoever comes first sends it. While the backend is
away nothing counts as sent, enqueues still succeed, and sending resumes when it is back.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fenceline.backends.contract import Backend, BackendUnavailable, Message
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.errors import FencelineError

log = logging.getLogger("fenceline.delivery")

#: How often `keep_sending` looks for messages of others.
LOOK_SECONDS = 1.0
#: How often a backend that is away is tried.
AWAY_SECONDS = 0.5
#: How long a program that ends waits for its last messages to be sent; after that, others send them.
CLOSE_SECONDS = 1.0


class Sender:
    def __init__(self, backend: Backend, call: Callable[[Call[Any]], Awaitable[Any]]) -> None:
        self.backend = backend
        self._call = call
        self._sending: asyncio.Task[None] | None = None
        self._again = False
        self._away_since: float | None = None
        self._try_at = 0.0

    def wake(self) -> None:
        """Send what is due, in the background. Raises nothing."""
        self._again = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        while self._again:
            self._again = False
            try:
                await self.run_once()
            except FencelineError as error:
                log.warning("messages could not be sent now, and will be: %s", error)

    async def keep_sending(self) -> None:
        """Look for what is due, until cancelled."""
        while True:
            self.wake()
            await asyncio.sleep(LOOK_SECONDS if self._away_since is None else AWAY_SECONDS)

    async def run_once(
        self, lanes: Sequence[str] | None = None, *, worker_id: int | None = None, wait_seconds: float | None = None
    ) -> int:
        """Send what is due; returns how many messages it was. Raises what the database raises."""
        if self._away_since is not None and not await self._is_back():
            return 0
        name = self.backend.name
        rows = await self._call(
            calls.messages.take_messages(name, lanes, worker_id=worker_id, wait_seconds=wait_seconds)
        )
        messages = [Message(*row) for row in rows]
        if not messages:
            return 0
        try:
            names = await self.backend.enqueue(messages)
        except BackendUnavailable as error:
            self.note_away(error)
            return 0
        if names is not None:
            await self._call(calls.messages.name_messages([message.job_id for message in messages], names))
        return len(messages)

    def note_away(self, error: BackendUnavailable) -> None:
        """The backend does not answer; logged once."""
        if self._away_since is None:
            self._away_since, self._try_at = time.monotonic(), 0.0
            self._measure(1)
            log.warning("%s: jobs wait in the database, and are sent when it answers", error)

    async def _is_back(self) -> bool:
        """Ask the backend, before anything counts as sent."""
        if time.monotonic() < self._try_at:
            return False
        self._try_at = time.monotonic() + AWAY_SECONDS
        try:
            await self.backend.get_job_metadata("")
        except BackendUnavailable:
            return False
        if self._away_since is not None:  # else another, who asked at the same time, has told
            seconds = time.monotonic() - self._away_since
            log.warning("the backend %s answers again, after %.0f s", self.backend.name, seconds)
            self._away_since = None
            self._measure(-1)
        return True

    def _measure(self, change: int) -> None:
        """If the program uses OpenTelemetry metrics: how many of its senders cannot send now."""
        metrics: Any = sys.modules.get("opentelemetry.metrics")
        if metrics is not None:
            counter = metrics.get_meter("fenceline").create_up_down_counter(
                "fenceline.delivery.away", description="Senders whose backend does not answer: jobs wait for it."
            )
            counter.add(change, {"delivery": self.backend.name})

    async def close(self) -> None:
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=CLOSE_SECONDS)
            self._sending.cancel()
            await asyncio.wait({self._sending})
        if self._away_since is not None:
            self._measure(-1)
        await self.backend.close()
