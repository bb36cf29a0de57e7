"""One child process, seen from its supervisor: from its start to the moment its last attempt is accounted for."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
from asyncio.subprocess import Process

from fenceline.worker.board import Board
from fenceline.worker.keeper import Keeper, Kept
from fenceline.worker.link import Link
from fenceline.worker.settings import WorkerSettings

log = logging.getLogger("fenceline.worker")

#: After the grace period and being asked to stop, a child has so long before it is killed.
LAST_SECONDS = 1.0
#: A child that has lost its lease must be gone before another worker starts its jobs.
LOST_SECONDS = 1.0


class Offspring:
    def __init__(self, keeper: Keeper, app_name: str, settings: WorkerSettings, stopping: asyncio.Event) -> None:
        self._keeper = keeper
        self._app_name = app_name
        self._settings = settings
        self._stopping = stopping
        self._kept: Kept | None = None
        self._fail_kinds: list[str] = []
        self._said_bye = False

    async def live(self, *, once: bool = False) -> int:
        """Start the process, see it through, and account for what it held. Returns its exit code."""
        board = Board()
        ours, theirs = socket.socketpair()
        settings = json.dumps({**self._settings.to_json(), "once": once})
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fenceline.worker.process", self._app_name, settings,
            str(theirs.fileno()), str(board.descriptor),
            pass_fds=(theirs.fileno(), board.descriptor),
            start_new_session=True,  # Ctrl-C in a terminal reaches the supervisor alone, which then tells the child
        )  # fmt: skip
        theirs.close()
        link = await Link.open(ours)
        talk = asyncio.create_task(self._talk(link, process, board))
        stop = asyncio.create_task(self._stop_in_time(link, process))
        try:
            exit_code = await process.wait()
            await talk
        finally:
            stop.cancel()
            if process.returncode is None:
                process.kill()
        if self._kept is not None:
            if self._said_bye or self._stopping.is_set():
                await self._keeper.sign_off(self._kept, self._fail_kinds)
            else:
                await self._keeper.report_crash(self._kept, exit_code)
        link.close()
        board.close()
        return exit_code

    async def _talk(self, link: Link, process: Process, board: Board) -> None:
        while (message := await link.receive()) is not None:
            if "registered" in message:
                self._fail_kinds = message["fail_kinds"]
                self._kept = self._keeper.keep(message["registered"], process.pid, link, board)
            elif "bye" in message:
                self._said_bye = True

    async def _stop_in_time(self, link: Link, process: Process) -> None:
        """The shutdown: let handlers finish, then ask them to stop, then kill. Nothing waits longer than that."""
        await self._stopping.wait()
        link.send(stop=True)
        await asyncio.sleep(self._settings.grace_seconds)
        link.send(hurry=True)
        await asyncio.sleep(LAST_SECONDS)
        log.warning("pid %s did not stop within its grace period and is killed", process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
