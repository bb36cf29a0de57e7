"""Keeps the leases of worker processes from outside them, and does the fleet's maintenance.

The keeper beats for processes that live and are not stopped: a blocked event loop, a held GIL or a stuck handler does
not matter, a frozen process (SIGSTOP) does, for it
would wake up believing that it still holds its jobs. When the database
cannot be reached, the keeper says so before the lease ends, by the monotonic clock.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fenceline.database import worker_calls
from fenceline.database.calls import Call
from fenceline.worker.board import Board
from fenceline.worker.line import Line
from fenceline.worker.link import Link

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

log = logging.getLogger("fenceline.worker")

MAINTENANCE_SECONDS = 1.0
#: The share of the lease after which handlers must stop when it could not be renewed.
LEASE_MARGIN = 0.75


@dataclass(slots=True, eq=False)
class Kept:
    """A process whose lease is kept."""

    worker_id: int
    pid: int
    link: Link
    board: Board
    renewed: float


class Keeper:
    def __init__(self, connect: "Callable[[], Awaitable[Connection]]", lease_seconds: float) -> None:
        self._line = Line("keeper", connect)
        self._lease_seconds = lease_seconds
        self.kept: dict[int, Kept] = {}

    async def call(self, call: "Call[Any]") -> Any:
        return await self._line.call(call)

    def keep(self, worker_id: int, pid: int, link: Link, board: Board) -> Kept:
        kept = Kept(worker_id, pid, link, board, time.monotonic())
        self.kept[worker_id] = kept
        return kept

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat(), name="heartbeat")
            tasks.create_task(self._watch_leases(), name="leases")
            tasks.create_task(self._maintain(), name="maintenance")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / 4)
            await self.beat_once()

    async def beat_once(self) -> None:
        kept = [k for k in self.kept.values() if not is_stopped(k.pid)]
        if not kept:
            return
        asked = time.monotonic()  # the lease counts from before the question
        words = await self._line.call(worker_calls.heartbeat([k.worker_id for k in kept]))
        lost = {word.worker_id for word in words if word.word == "lost"}
        cancels: dict[int, list[UUID]] = {}
        for word in words:
            if word.word == "cancel" and word.attempt_id is not None:
                cancels.setdefault(word.worker_id, []).append(word.attempt_id)
        for k in kept:
            if k.worker_id in lost:
                k.link.send(lost=True)
                self.kept.pop(k.worker_id, None)
            else:
                k.renewed = asked
            if k.worker_id in cancels:
                k.link.send(cancel=[str(attempt_id) for attempt_id in cancels[k.worker_id]])

    async def _watch_leases(self) -> None:
        """Tell processes whose lease is about to end, however long the database has been silent."""
        while True:
            await asyncio.sleep(min(0.5, self._lease_seconds / 20))
            now = time.monotonic()
            for kept in list(self.kept.values()):
                if now - kept.renewed > self._lease_seconds * LEASE_MARGIN:
                    log.error("the lease of worker %s could not be renewed in time", kept.worker_id)
                    kept.link.send(lost=True)
                    del self.kept[kept.worker_id]

    async def _maintain(self) -> None:
        while True:
            # Somebody in the fleet has to; who did not get a turn looks less often.
            done = await self._line.call(worker_calls.maintain())
            pause = MAINTENANCE_SECONDS if done is not None else 2 * MAINTENANCE_SECONDS
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))  # noqa: S311 - jitter

    async def report_crash(self, kept: Kept, exit_code: int | None) -> None:
        """The process has died: its attempts go back at once, with those as suspects whose handlers were running."""
        suspects = kept.board.read()
        kept.board.clear()
        self.kept.pop(kept.worker_id, None)
        ended = await self._line.call(worker_calls.report_crash(kept.worker_id, suspects, {"exit_code": exit_code}))
        log.error(
            "worker %s (pid %s) died with exit code %s: %s attempts given back, %s of them suspects",
            kept.worker_id, kept.pid, exit_code, ended, len(suspects),
        )  # fmt: skip

    async def sign_off(self, kept: Kept, fail_kinds: list[str]) -> None:
        """The process has ended in good order: whatever it may still hold goes back."""
        self.kept.pop(kept.worker_id, None)
        await self._line.call(worker_calls.stop_worker(kept.worker_id, fail_kinds))

    def close(self) -> None:
        self._line.close()


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal. Where that cannot be told, it is taken to run."""
    with contextlib.suppress(OSError, IndexError):
        # "pid (name) state …"; the name may hold anything, also brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    return False
