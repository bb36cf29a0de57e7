"""Renews the lease from inside, names what is held, and brings what was asked of it.

That is for deliveries that want to hear of every attempt, and for workers whose lease nobody keeps from outside. When
it cannot be renewed, whoever watches the lease stops the handlers before it ends (`Engine`).
"""

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from fenceline.delivery.contract import Delivery
from fenceline.errors import FencelineError, WorkerLost
from fenceline.model.worker_settings import BEATS_PER_LEASE

if TYPE_CHECKING:
    from fenceline.engine.engine import Engine

log = logging.getLogger("fenceline.worker")

#: A cancel is heard of within so long.
MAX_PAUSE_SECONDS = 5.0
#: After a heartbeat that was not answered.
RETRY_SECONDS = 0.5


class LeaseRenewer:
    def __init__(self, delivery: Delivery, lease_seconds: float, engine: "Engine") -> None:
        self._delivery = delivery
        self._lease_seconds = lease_seconds
        self._engine = engine

    async def run(self) -> None:
        """Until the worker has lost its lease."""
        while True:
            pause = min(self._lease_seconds / BEATS_PER_LEASE, MAX_PAUSE_SECONDS)
            try:
                await self.run_once()
            except WorkerLost as error:
                log.error("this worker was taken for dead: %s", error)  # noqa: TRY400 - no bug
                self._engine.lose()
                return
            except (FencelineError, OSError) as error:
                log.warning("a heartbeat was not answered: %s", error)
                pause = min(pause, RETRY_SECONDS)
            await asyncio.sleep(pause)

    async def run_once(self) -> None:
        """One heartbeat, and what it asks for. Raises as `Delivery.heartbeat`."""
        asked = time.monotonic()  # the lease counts from before the question
        async with asyncio.timeout(max(self._lease_seconds / BEATS_PER_LEASE, 1.0)):
            notices = await self._delivery.heartbeat(self._engine.held)
        self._engine.note_renewed(asked)
        self._engine.heed(notices)
