"""Keeps the leases of worker processes from outside them, and does the fleet's maintenance.

The keeper beats for processes that live and are not stopped: a blocked event loop, a held GIL or a stuck handler does
not matter, a frozen process (SIGSTOP) does, for it would wake up believing that it still holds its jobs. When the
database cannot be reached, the keeper says so before the lease ends, by the monotonic clock.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from fenceline.client.maintenance import Maintenance
from fenceline.database import worker_calls
from fenceline.worker.board import Board
from fenceline.worker.line import Line
from fenceline.worker.link import Link

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

log = logging.getLogger("fenceline.worker")

#: Leases are renewed so many times before they would end.
BEATS_PER_LEASE = 4
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
    lost: asyncio.Event = field(default_factory=asyncio.Event)


class Keeper:
    """Two connections: maintenance may take its time, a heartbeat may not."""

    def __init__(self, connect: "Callable[[], Awaitable[Connection]]", lease_seconds: float) -> None:
        self._line = Line("keeper", connect, answer_seconds=max(lease_seconds / BEATS_PER_LEASE, 1.0))
        self._maintenance_line = Line("maintenance", connect, answer_seconds=600.0)
        self.maintenance = Maintenance(self._maintenance_line.call)
        self._lease_seconds = lease_seconds
        self.kept: dict[int, Kept] = {}

    def keep(self, worker_id: int, pid: int, link: Link, board: Board) -> Kept:
        kept = Kept(worker_id, pid, link, board, time.monotonic())
        self.kept[worker_id] = kept
        return kept

    async def run(self) -> None:
        """Until cancelled: whatever goes wrong once is tried again, because children live by it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat(), name="heartbeat")
            tasks.create_task(self._watch_leases(), name="leases")
            tasks.create_task(self.maintenance.run(), name="maintenance")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / BEATS_PER_LEASE)
            try:
                await self.beat_once()
            except Exception:
                log.exception("a heartbeat failed")

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
                self._lose(k, "it was taken for dead")
            else:
                k.renewed = asked
                k.link.send(renewed=asked)
            if k.worker_id in cancels:
                k.link.send(cancel=[str(attempt_id) for attempt_id in cancels[k.worker_id]])

    async def _watch_leases(self) -> None:
        """Tell processes whose lease is about to end, however long the database has been silent."""
        while True:
            await asyncio.sleep(min(0.5, self._lease_seconds / 20))
            now = time.monotonic()
            for kept in list(self.kept.values()):
                if now - kept.renewed > self._lease_seconds * LEASE_MARGIN:
                    self._lose(kept, "the process is stopped" if is_stopped(kept.pid) else "no answer in time")

    def _lose(self, kept: Kept, why: str) -> None:
        if self.kept.pop(kept.worker_id, None) is not None:
            log.error("the lease of worker %s (pid %s) could not be renewed: %s", kept.worker_id, kept.pid, why)
            kept.link.send(lost=True)
            kept.lost.set()

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
        self._maintenance_line.close()


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal. Where that cannot be told, it is taken to run."""
    with contextlib.suppress(OSError, IndexError):
        # "pid (name) state …"; the name may hold anything, also brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    return False
