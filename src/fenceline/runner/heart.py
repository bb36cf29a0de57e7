"""The runner's heartbeats: they renew the lease, name what is held, and bring what was asked of it.

When the lease cannot be renewed, handlers are stopped before it ends, by the monotonic clock. A loop that was blocked
asks first: the helper process may have kept the lease meanwhile.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from uuid import UUID

from fenceline.errors import NotFound
from fenceline.runner.client import Client, ServerAway
from fenceline.runner.spool import Spool
from fenceline.worker.executor import Executor
from fenceline.worker.keeper import BEATS_PER_LEASE, LEASE_MARGIN

log = logging.getLogger("fenceline.runner")

#: A cancel is heard of within so long.
MOST_PAUSE_SECONDS = 5.0
#: After a heartbeat that was not answered.
RETRY_SECONDS = 0.5


class Heart:
    def __init__(self, client: Client, executor: Executor, spool: Spool, *, lose: Callable[[], None]) -> None:
        self._client = client
        self._executor = executor
        self._spool = spool
        self._lose = lose
        self._renewed = time.monotonic()
        self.runner_id = 0
        self.lease_seconds = 60.0

    def registered(self, runner_id: int, lease_seconds: float, at: float) -> None:
        self.runner_id = runner_id
        self.lease_seconds = lease_seconds
        self._renewed = at

    async def run(self) -> None:
        """Until the lease is lost."""
        while True:
            pause = min(self.lease_seconds / BEATS_PER_LEASE, MOST_PAUSE_SECONDS)
            try:
                if not await self.run_once():
                    log.error("the server has taken this runner for dead")
                    self._lose()
                    return
            except ServerAway as error:
                log.warning("a heartbeat was not answered: %s", error)
                if time.monotonic() - self._renewed > self.lease_seconds * LEASE_MARGIN:
                    log.error("the lease could not be renewed: handlers are stopped before it ends")  # noqa: TRY400 - no bug
                    self._lose()
                    return
                pause = min(pause, RETRY_SECONDS)
            await asyncio.sleep(pause)

    async def run_once(self) -> bool:
        """One heartbeat, and what it asks for; False: the lease is over. Raises ServerAway."""
        asked = time.monotonic()  # the lease counts from before the question
        held = [*self._executor.held, *self._spool.held]
        try:
            said = await self._client.ask_once(
                "POST",
                f"/v1/runners/{self.runner_id}/heartbeat",
                json.dumps({"attempts": [str(attempt_id) for attempt_id in held]}),
                answer_seconds=max(self.lease_seconds / BEATS_PER_LEASE, 1.0),
            )
        except NotFound:
            return False
        self._renewed = asked
        for attempt_id in said["cancel"]:
            self._executor.request_cancel(UUID(attempt_id), said["grace"].get(attempt_id))
        for text in said["stale"]:
            attempt_id = UUID(text)
            if attempt_id in self._executor.running:
                self._executor.abandon(attempt_id)
            else:
                self._executor.request_cancel(attempt_id)  # it has not started: it will not
                self._spool.drop(attempt_id)
        return True
