"""Claims jobs over HTTP, as many as this process can use, with one request that waits on the server for work."""

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
        self.runner_id = 0
        self.stopping = False
        self.lost = asyncio.Event()

    async def run(self) -> None:
        while not self.stopping:
            await self._until_room()
            if not self.stopping:
                await self.run_once()

    async def run_once(self, *, wait_seconds: float = WAIT_SECONDS) -> int:
        """One claim for as much as there is room; returns how many jobs came."""
        room, kinds = self._room()
        if self._suspects_since is not None and self._executor.idle:
            room, kinds, wait_seconds = 1, None, 0.0  # alone in this process: a suspect is served first
        if room <= 0:
            return 0
        return await self._claim(room, kinds, wait_seconds)

    async def claim_one(self) -> int:
        return await self._claim(1, None, 0.0)

    async def _claim(self, count: int, kinds: list[str] | None, wait_seconds: float) -> int:
        body: dict[str, Any] = {
            "runner_id": self.runner_id,
            "count": count,
            "wait": wait_seconds,
            "request_id": str(uuid4()),
        }
        if kinds is not None:
            body["kinds"] = kinds
        try:
            answer = await self._client.ask(
                "POST", "/v1/jobs/claim", json.dumps(body), answer_seconds=wait_seconds + ANSWER_SECONDS
            )
        except NotFound:
            self.lost.set()
            self.stopping = True
            return 0
        self._note_suspects(waiting=answer["suspects"])
        attempts = [read_attempt(claimed) for claimed in answer["attempts"]]
        self._counters.claimed += len(attempts)
        self._submit(attempts)
        return len(attempts)

    def note_run_time(self, seconds: float) -> None:
        self._mean_seconds += (seconds - self._mean_seconds) * 0.05

    def _room(self) -> tuple[int, list[str] | None]:
        """How many jobs to ask for, and of which kinds (None: all): those whose mode has a free place."""
        if self._runs_empty() or self._spooled() > MOST_SPOOLED:
            return 0, None
        used = set(self._modes.values())
        free = {mode: self._executor.free(mode) for mode in used}
        if self._mean_seconds <= QUICK_SECONDS and all(places > 0 for mode, places in free.items() if mode != "loop"):
            ahead = min(self._settings.batch, MOST_AHEAD)
            return (ahead if self._executor.waiting < ahead else 0), None
        open_modes = {mode for mode in used if free[mode] > 0}
        room = min((free[mode] for mode in open_modes), default=0)
        if open_modes == used:
            return room, None
        return room, [kind for kind, mode in self._modes.items() if mode in open_modes]

    async def _until_room(self) -> None:
        while not self.stopping and self._room()[0] <= 0:
            if self._suspects_since is not None and self._executor.idle:
                return
            self._executor.changed.clear()
            if self._room()[0] <= 0:
                await self._executor.changed.wait()

    def _runs_empty(self) -> bool:
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
