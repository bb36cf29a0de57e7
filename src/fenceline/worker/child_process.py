"""One child process, seen from its supervisor: from its start to the moment its last attempt is accounted for."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable

from fenceline.engine.running_board import RunningBoard
from fenceline.model.worker_settings import WorkerSettings
from fenceline.worker.lease_keeper import KeptLease, LeaseKeeper, is_stopped
from fenceline.worker.process_channel import ProcessChannel, start_with_channel
from fenceline.worker.shutdown import Shutdown
from fenceline.worker.worker_metrics import Metrics

log = logging.getLogger("fenceline.worker")

#: After the grace period and being asked to stop, a child has so long before it is killed.
LAST_SECONDS = 1.0
#: After the last child has ended, the database has so long to take note of it. What it cannot be told, the lease does.
GOODBYE_SECONDS = 0.7
#: A child that has lost its lease must be gone before another worker starts its jobs: it has this share of its lease.
LOST_SHARE = 0.1
#: Words that a dead child has left in the pipe are there at once.
LAST_WORDS_SECONDS = 1.0


class ChildProcess:
    def __init__(
        self,
        keeper: LeaseKeeper,
        app_name: str,
        settings: WorkerSettings,
        *,
        shutdown: Shutdown,
        metrics: Metrics | None = None,
        on_registered: Callable[[], None] = lambda: None,
    ) -> None:
        self._metrics = metrics
        self._on_registered = on_registered
        self._keeper = keeper
        self._app_name = app_name
        self._settings = settings
        self._shutdown = shutdown
        self._board = RunningBoard(entries=settings.most_at_once)
        self._kept: KeptLease | None = None
        self._registered = asyncio.Event()
        self._fail_kinds: list[str] = []
        self._said_bye = False
        self.unloadable: str | None = None  # why the process cannot import the app

    @property
    def was_registered(self) -> bool:
        return self._registered.is_set()

    async def live(self, *, once: bool = False) -> int:
        """Start the process, see it through, and account for what it held. Returns its exit code."""
        settings = json.dumps({**self._settings.to_json(), "once": once})
        board = self._board.descriptor
        channel, process = await start_with_channel(
            "fenceline.worker.child_main", lambda end: (self._app_name, settings, end, board), descriptors=[board]
        )
        listening = asyncio.create_task(self._listen(channel, process))
        watchers = [
            listening,
            asyncio.create_task(self._stop_in_time(channel, process)),
            asyncio.create_task(self._end_when_lost(process)),
        ]
        try:
            exit_code = await process.wait()
            # A process that the child has left behind may hold the other end open.
            await asyncio.wait({listening}, timeout=LAST_WORDS_SECONDS)
            await self._account(exit_code)
        finally:
            for watcher in watchers:
                watcher.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()  # or asyncio complains that its loop was closed too early
            if self._metrics is not None:
                self._metrics.forget(process.pid)
            channel.close()
            self._board.close()
        return exit_code

    async def lose(self) -> None:
        """Wait until the child has lost its lease."""
        await self._registered.wait()
        assert self._kept is not None  # noqa: S101 - set with the event
        await self._kept.lost.wait()

    async def _account(self, exit_code: int) -> None:
        if self._kept is None:
            return
        if self._shutdown.asked.is_set():
            try:
                async with asyncio.timeout(GOODBYE_SECONDS):
                    if self._kept.blame is None:
                        await self._keeper.sign_off(self._kept, self._fail_kinds)
                    else:
                        await self._keeper.report_crash(self._kept, exit_code)
            except TimeoutError:
                log.warning(
                    "the database did not hear that worker %s has stopped: its lease will", self._kept.worker_id
                )
        elif self._said_bye or self._kept.lost.is_set():
            await self._keeper.sign_off(self._kept, [])
        else:
            await self._keeper.report_crash(self._kept, exit_code)

    async def _listen(self, channel: ProcessChannel, process: Process) -> None:
        while (message := await channel.receive()) is not None:
            if "registered" in message:
                self._fail_kinds = message["fail_kinds"]
                self._kept = self._keeper.keep(message["registered"], process.pid, channel, self._board)
                self._registered.set()
                self._on_registered()
            elif "counts" in message and self._metrics is not None:
                self._metrics.update(process.pid, message["counts"])
            elif "unloadable" in message:
                self.unloadable = message["unloadable"]
            elif "bye" in message:
                self._said_bye = True

    async def _stop_in_time(self, channel: ProcessChannel, process: Process) -> None:
        """The shutdown: let handlers finish, then ask them to stop, then kill. Nothing waits longer than that."""
        await self._shutdown.asked.wait()
        channel.send(stop=True)
        await self._shutdown.until_over(self._settings.grace_seconds)
        channel.send(hurry=True)
        await asyncio.sleep(LAST_SECONDS)
        log.warning("pid %s did not stop within its grace period and is killed", process.pid)
        _kill(process)

    async def _end_when_lost(self, process: Process) -> None:
        """The child has been told, and stops its handlers; one that cannot is killed.

        A frozen process does nothing that would need a kill; whoever wakes it up finds that its writes are refused.
        """
        await self.lose()
        patience = self._settings.lease_seconds * LOST_SHARE
        await asyncio.sleep(patience)
        while is_stopped(process.pid):
            await asyncio.sleep(patience)
            if not is_stopped(process.pid):
                await asyncio.sleep(1.0)  # it wakes up, reads that its lease is lost and says goodbye
        log.warning("pid %s has lost its lease and does not end: it is killed", process.pid)
        _kill(process)


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
