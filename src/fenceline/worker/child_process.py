"""One child process as its supervisor sees it: from its start until its last attempt is accounted for."""

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
from fenceline.worker import shutdown
from fenceline.worker.lease_keeper import KeptLease, LeaseKeeper, is_stopped
from fenceline.worker.process_channel import ProcessChannel, start_with_channel
from fenceline.worker.shutdown import LAST_SECONDS, Shutdown
from fenceline.worker.worker_metrics import Metrics

log = logging.getLogger("fenceline.worker")

#: The share of its lease that a child has to end once it has lost it: before another worker starts its jobs.
LOST_SHARE = 0.1
#: How long to read what a dead child has left in the channel.
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
        self._kept: asyncio.Future[KeptLease] = asyncio.get_running_loop().create_future()  # done: it has registered
        self._fail_kinds: list[str] = []
        self._said_bye = False
        self.unloadable: str | None = None  # why the process cannot import the app

    @property
    def was_registered(self) -> bool:
        return self._kept.done()

    async def live(self, *, once: bool = False) -> int:
        """Start the process, wait for its end, and account for what it held. Returns its exit code."""
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
            # Not for ever: a process that the child left behind may hold the other end open.
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
        kept = await asyncio.shield(self._kept)
        await kept.lost.wait()

    async def _account(self, exit_code: int) -> None:
        if not self._kept.done():
            # Its own last words may be missing: the app, or a library that it imports, has ended the process.
            if exit_code != 0 and self.unloadable is None and not self._shutdown.asked.is_set():
                log.error("a child ended with exit code %s before it was ready for jobs", exit_code)
            return
        kept = self._kept.result()
        if self._shutdown.asked.is_set():
            try:
                async with asyncio.timeout(shutdown.GOODBYE_SECONDS):
                    if kept.blame is None:
                        await self._keeper.sign_off(kept, self._fail_kinds)
                    else:
                        await self._keeper.report_crash(kept, exit_code)
            except TimeoutError:
                log.warning("the database did not hear that worker %s has stopped: its lease will", kept.worker_id)
        elif self._said_bye or kept.lost.is_set():
            await self._keeper.sign_off(kept, [])
        else:
            await self._keeper.report_crash(kept, exit_code)

    async def _listen(self, channel: ProcessChannel, process: Process) -> None:
        while (message := await channel.receive()) is not None:
            if "registered" in message:
                self._fail_kinds = message["fail_kinds"]
                self._kept.set_result(self._keeper.keep(message["registered"], process.pid, channel, self._board))
                self._on_registered()
            elif "counts" in message and self._metrics is not None:
                self._metrics.update(process.pid, message["counts"])
            elif "unloadable" in message:
                self.unloadable = message["unloadable"]
            elif "bye" in message:
                self._said_bye = True

    async def _stop_in_time(self, channel: ProcessChannel, process: Process) -> None:
        """On shutdown: let handlers finish, then ask them to stop, then kill the process."""
        await self._shutdown.asked.wait()
        channel.send(stop=True)
        await self._shutdown.until_over(self._settings.grace_seconds)
        channel.send(hurry=True)
        await asyncio.sleep(LAST_SECONDS)
        log.warning("pid %s did not stop within its grace period and is killed", process.pid)
        _kill(process)

    async def _end_when_lost(self, process: Process) -> None:
        """The child was told that it lost its lease and stops its handlers; if it cannot, it is killed.

        A frozen process does no harm and is not killed; when it wakes up, its writes are refused.
        """
        await self.lose()
        patience = self._settings.lease_seconds * LOST_SHARE
        await asyncio.sleep(patience)
        while is_stopped(process.pid):
            await asyncio.sleep(patience)
            if not is_stopped(process.pid):
                await asyncio.sleep(1.0)  # to read that its lease is lost, and to say goodbye
        log.warning("pid %s has lost its lease and does not end: it is killed", process.pid)
        _kill(process)


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
