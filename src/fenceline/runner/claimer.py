"""Claims jobs over HTTP, as many as this process can use, with requests that wait on the server for work."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from fenceline.context.attempt import Attempt
from fenceline.errors import NotFound
from fenceline.model.public_id import parse_id
from fenceline.runner.client import ANSWER_SECONDS, Client
from fenceline.worker.executor import Executor
from fenceline.worker.settings import Counters, WorkerSettings

log = logging.getLogger("fenceline.runner")

#: How long a claim waits on the server for a job.
WAIT_SECONDS = 20.0
#: Jobs that take less than this on average are fetched ahead.
QUICK_SECONDS = 0.005
MOST_AHEAD = 500
#: While so many endings wait for the server, nothing is claimed.
MOST_SPOOLED = 1000
#: When suspects have waited for so long, the process runs empty so that they get their turn.
SUSPECTS_PATIENCE_SECONDS = 30.0
#: Between claims that found nothing while suspects wait: such claims do not wait on the server.
SUSPECTS_PAUSE_SECONDS = 0.5


class Claimer:
    def __init__(
        self,
        client: Client,
        executor: Executor,
        settings: WorkerSettings,
        counters: Counters,
        *,
        modes: dict[str, str],
        submit: Callable[[list[Attempt]], None],
        spooled: Callable[[], int],
    ) -> None:
        """`modes`: how each kind is run; `spooled`: how many endings wait for the server."""
        self._client = client
        self._executor = executor
        self._settings = settings
        self._counters = counters
        self._modes = modes
        self._submit = submit
        self._spooled = spooled
        self._mean_seconds = 1.0
        self._suspects_since: float | None = None
        self._patience = SUSPECTS_PATIENCE_SECONDS
        self._turn = asyncio.Lock()
        self.runner_id = 0
        self.stopping = False
        self.lost = asyncio.Event()

    async def run(self) -> None:
        """Until told to stop: a claim for each mode, so that one whose places are taken holds up no other."""
        loops = [asyncio.create_task(self._run_mode(mode)) for mode in sorted(set(self._modes.values()))]
        try:
            await asyncio.gather(*loops)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.wait(loops)

    async def _run_mode(self, mode: str) -> None:
        while not self.stopping:
            room = await self._until_room(mode)
            if room <= 0:
                return
            if self._suspects_since is None:
                await self._claim(room, mode, WAIT_SECONDS)
            elif not await self._claim_beside_suspects(mode):
                await asyncio.sleep(SUSPECTS_PAUSE_SECONDS)

    async def claim_one(self) -> int:
        return await self._claim(1, None, 0.0)

    async def _claim_beside_suspects(self, mode: str) -> int:
        """Jobs that shared a process with a crash run alone: one of them if nothing runs here, else what there is."""
        async with self._turn:
            if not self._executor.idle:
                return await self._claim(self._room(mode), mode, 0.0) if self._room(mode) > 0 else 0
            claimed = await self._claim(1, None, 0.0)
            await self._until_idle()
            return claimed

    async def _until_idle(self) -> None:
        while not (self._executor.idle or self.stopping):
            self._executor.changed.clear()
            await self._executor.changed.wait()

    async def _claim(self, count: int, mode: str | None, wait_seconds: float) -> int:
        """One claim; returns how many jobs came."""
        body: dict[str, Any] = {
            "runner_id": self.runner_id,
            "count": count,
            "wait": wait_seconds,
            "request_id": str(uuid4()),
        }
        if mode is not None:
            body["kinds"] = [kind for kind, its in self._modes.items() if its == mode]
        try:
            answer = await self._client.ask(
                "POST", "/v1/jobs/claim", json.dumps(body), answer_seconds=wait_seconds + ANSWER_SECONDS
            )
        except NotFound:
            self.lost.set()
            self.stopping = True
            self._executor.changed.set()
            return 0
        self._note_suspects(waiting=answer["suspects"])
        attempts = [read_attempt(claimed) for claimed in answer["attempts"]]
        self._counters.claimed += len(attempts)
        self._submit(attempts)
        return len(attempts)

    def note_run_time(self, seconds: float) -> None:
        self._mean_seconds += (seconds - self._mean_seconds) * 0.05

    def _room(self, mode: str) -> int:
        """How many jobs of a mode to ask for."""
        if self._runs_empty() or self._spooled() > MOST_SPOOLED:
            return 0
        if mode == "loop" and self._mean_seconds <= QUICK_SECONDS:
            ahead = min(self._settings.batch, MOST_AHEAD)
            return ahead if self._executor.waiting < ahead else 0
        return self._executor.free(mode)

    async def _until_room(self, mode: str) -> int:
        """How much room there is, once there is any; 0: we are to stop."""
        while not self.stopping:
            room = self._room(mode)
            if room > 0:
                return room
            self._executor.changed.clear()
            await self._executor.changed.wait()
        return 0

    def _runs_empty(self) -> bool:
        """Nothing new is started because suspects have waited too long for a process without others."""
        since = self._suspects_since
        return since is not None and time.monotonic() - since > self._patience and not self._executor.idle

    def _note_suspects(self, *, waiting: bool) -> None:
        if not waiting:
            self._suspects_since = None
        elif self._suspects_since is None:
            self._suspects_since = time.monotonic()
            # Not the whole fleet at once.
            self._patience = SUSPECTS_PATIENCE_SECONDS * random.uniform(1, 4)  # noqa: S311 - jitter


def read_attempt(claimed: dict[str, Any]) -> Attempt:
    """An attempt as the server described it."""
    job = claimed["job"]
    return Attempt(
        lane=job["lane"],
        job_id=parse_id(job["id"]),
        attempt_id=UUID(claimed["attempt_id"]),
        token=claimed["token"],
        number=claimed["number"],
        kind=job["kind"],
        args=json.dumps(job["args"]),
        tenant=job["tenant"],
        priority=job["priority"],
        seq=0,  # of no use here
        max_attempts=job["max_attempts"],
        timeout_seconds=claimed["timeout_seconds"],
        alone=claimed["alone"],
        more=None if claimed["details"] is None else json.dumps(claimed["details"]),
    )
