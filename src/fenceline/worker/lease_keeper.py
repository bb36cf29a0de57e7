"""Keeps the leases of worker processes from outside them.

The keeper renews the leases of processes that live: a blocked event loop, a held GIL or a stuck handler does not
matter. A frozen process (SIGSTOP) loses its lease, since it would wake up believing that it still holds its jobs. When
there is no answer, the keeper tells the processes before their leases end, by the monotonic clock. When a blocked loop
keeps a job past its timeout, the keeper kills the process, or fences it off where it must not kill it.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fenceline.delivery.contract import Leases
from fenceline.engine.running_board import RunningBoard
from fenceline.errors import FencelineError
from fenceline.model.public_id import format_id
from fenceline.model.worker_settings import BEATS_PER_LEASE, LEASE_MARGIN
from fenceline.worker.blockage import LOOK_SECONDS, Blame, Blockage
from fenceline.worker.process_channel import ProcessChannel

log = logging.getLogger("fenceline.worker")

#: The pause before a lease is renewed whose row another transaction held.
BUSY_SECONDS = 1.0
#: How many suspects a line of the log names.
MAX_NAMED = 10
NOBODY = Blame()


@dataclass(slots=True, eq=False)
class KeptLease:
    """A process whose lease is kept."""

    worker_id: int
    pid: int
    channel: ProcessChannel
    board: RunningBoard
    renewed: float
    blockage: Blockage
    may_kill: bool
    blame: Blame | None = None
    is_named: bool = False  # as blocked, in the log
    lost: asyncio.Event = field(default_factory=asyncio.Event)


class LeaseKeeper:
    def __init__(self, leases: Leases, lease_seconds: float) -> None:
        self._leases = leases
        self._lease_seconds = lease_seconds
        self.kept: dict[int, KeptLease] = {}

    def keep(
        self, worker_id: int, pid: int, channel: ProcessChannel, board: RunningBoard, *, may_kill: bool = True
    ) -> KeptLease:
        """`may_kill`: the process belongs to the worker alone."""
        blockage = Blockage(board, lambda: is_stopped(pid))
        kept = KeptLease(worker_id, pid, channel, board, time.monotonic(), blockage, may_kill)
        self.kept[worker_id] = kept
        return kept

    async def run(self) -> None:
        """Run until cancelled. Whatever goes wrong is tried again, because workers depend on it."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat(), name="heartbeat")
            tasks.create_task(self._watch_leases(), name="leases")
            tasks.create_task(self._watch_loops(), name="loops")
            tasks.create_task(self._leases.maintain(), name="maintenance")

    async def _beat(self) -> None:
        period = self._lease_seconds / BEATS_PER_LEASE
        renewed_all = True
        while True:
            await asyncio.sleep(period if renewed_all else min(period, BUSY_SECONDS))
            try:
                renewed_all = await self.beat_once()
            except FencelineError as error:
                renewed_all = False
                log.warning("a heartbeat was not answered: %s", error)
            except Exception:
                log.exception("a heartbeat failed")

    async def beat_once(self) -> bool:
        """Renew the leases; False: another transaction holds the row of one."""
        kept = [k for k in self.kept.values() if not is_stopped(k.pid)]
        if not kept:
            return True
        asked = time.monotonic()  # the lease counts from before the question
        blocked = {
            k.worker_id: {"seconds": k.blockage.seconds, "job_id": k.blockage.job_id}
            for k in kept
            if k.blockage.is_blocked
        }
        notices = await self._leases.renew([k.worker_id for k in kept], blocked)
        lost = {notice.worker_id for notice in notices if notice.notice == "lost"}
        busy = {notice.worker_id for notice in notices if notice.notice == "busy"}
        for k in kept:
            if k.worker_id in lost:
                self._lose(k, "it was taken for dead")
            elif k.worker_id not in busy:
                k.renewed = asked
                k.channel.send(renewed=asked)
            cancels = [str(n.attempt_id) for n in notices if n.notice == "cancel" and n.worker_id == k.worker_id]
            if cancels:
                k.channel.send(cancel=cancels)
        return not busy

    async def _watch_leases(self) -> None:
        """Tell processes when their lease is about to end, even while there is no answer."""
        while True:
            await asyncio.sleep(min(0.5, self._lease_seconds / 20))
            now = time.monotonic()
            for kept in list(self.kept.values()):
                if now - kept.renewed > self._lease_seconds * LEASE_MARGIN:
                    self._lose(kept, "the process is stopped" if is_stopped(kept.pid) else "no answer in time")

    async def _watch_loops(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for kept in [k for k in self.kept.values() if k.blame is None]:
                try:
                    await self._look_at(kept)
                except Exception:
                    log.exception("worker %s: its board could not be read", kept.worker_id)

    async def _look_at(self, kept: KeptLease) -> None:
        if kept.worker_id not in self.kept:
            return  # meanwhile
        blockage, worker = kept.blockage, f"worker {kept.worker_id} (pid {kept.pid})"
        blame = blockage.look()
        if blockage.is_blocked and not kept.is_named:
            by = "" if blockage.job_id is None else f" by the handler of job {format_id(blockage.job_id)}"
            log.warning(
                "%s: its event loop has been blocked for %.1f seconds%s: blocking code belongs in a `def` handler",
                worker, blockage.seconds, by,
            )  # fmt: skip
        elif kept.is_named and not blockage.is_blocked:
            log.warning("%s: its event loop turns again", worker)
        kept.is_named = blockage.is_blocked
        if blame is None:
            return
        kept.blame = blame
        log.error(
            "%s: job %s blocks it past a timeout, so it is %s", worker, ", ".join(map(format_id, blame.jobs)),
            "killed" if kept.may_kill else "fenced off",
        )  # fmt: skip
        if kept.may_kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(kept.pid, signal.SIGKILL)  # its `ChildProcess` reports the end
        else:
            self._lose(kept, "its loop is blocked")
            await self.report_crash(kept, None)

    def _lose(self, kept: KeptLease, why: str) -> None:
        if self.kept.pop(kept.worker_id, None) is not None:
            log.error("the lease of worker %s (pid %s) could not be renewed: %s", kept.worker_id, kept.pid, why)
            kept.channel.send(lost=True)
            kept.lost.set()

    async def report_crash(self, kept: KeptLease, exit_code: int | None) -> None:
        """The process has died: give back its attempts at once; those whose handlers were running are suspects."""
        report: dict[str, Any] = {"error": {"exit_code": exit_code}}
        if kept.blame is None:
            report["suspects"] = [entry.attempt_id for entry in kept.board.entries()]
            log.error(
                "crashed: worker %s (pid %s) died with exit code %s", kept.worker_id, kept.pid, exit_code,
                extra={"fields": {"event": "worker_crashed", "worker": kept.worker_id, "exit_code": exit_code}},
            )  # fmt: skip
        else:  # it was killed because of those that blocked it, and no other is to blame
            blame, kept.blame = kept.blame, NOBODY
            report |= {"suspects": [], "timed_out": blame.timed_out, "set_apart": blame.set_apart}
        self.kept.pop(kept.worker_id, None)
        death = await self._leases.report_death(kept.worker_id, report)
        given_back = death.ended - len(death.quarantined)
        log.error(
            "worker %s held %s jobs, which go back to the queue%s", kept.worker_id, given_back, _name(death.suspects),
            extra={"fields": {"event": "jobs_given_back", "worker": kept.worker_id, "suspects": death.suspects}},
        )  # fmt: skip
        for job in death.quarantined:
            log.error(
                "job %s is quarantined: it has killed its process again and again while it ran alone", job,
                extra={"fields": {"event": "quarantined", "job": job}},
            )  # fmt: skip

    async def sign_off(self, kept: KeptLease, fail_kinds: list[str]) -> None:
        """The process has ended in good order: give back what it still holds."""
        self.kept.pop(kept.worker_id, None)
        await self._leases.sign_off(kept.worker_id, fail_kinds)


def _name(suspects: list[str]) -> str:
    """For the log; there may be hundreds."""
    if not suspects:
        return ""
    others = f" and {len(suspects) - MAX_NAMED} more" if len(suspects) > MAX_NAMED else ""
    return f"; each of these runs alone next, for it may have done it: {', '.join(suspects[:MAX_NAMED])}{others}"


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal; False where that is unknown."""
    with contextlib.suppress(OSError, IndexError):
        # "pid (name) state …"; the name may hold anything, also brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    return False
