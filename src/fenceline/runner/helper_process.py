"""The helper process, seen from its runner (`helper` is its program)."""

import asyncio
import contextlib
import logging
import os
from asyncio.subprocess import Process
from typing import Any

from fenceline.worker.board import Board
from fenceline.worker.link import Link, start_linked

log = logging.getLogger("fenceline.runner")

#: To end once it was told to.
GOODBYE_SECONDS = 0.4
#: Before one that ended by itself is replaced.
PAUSE_SECONDS = 2.0


class HelperProcess:
    def __init__(self, url: str, token: str, board: Board) -> None:
        self._url, self._token = url, token
        self._board = board
        self._link: Link | None = None
        self._lease: dict[str, Any] | None = None
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Have a process that keeps the lease, too; one that ends is replaced."""
        while True:
            # Cancelled in the middle of the start, nobody would be left to end the process: so that is seen through.
            starting = asyncio.create_task(self._start())
            try:
                link, process = await asyncio.shield(starting)
                self._link = link
                self._tell()
                if await link.receive() is not None:
                    self.ready.set()
                code = await process.wait()
                log.error("the helper that keeps the lease has ended with code %s: another is started", code)
            finally:
                link, process = await starting
                self._link = None
                link.send(bye=0)
                link.close()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE_SECONDS):
                        await process.wait()
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            await asyncio.sleep(PAUSE_SECONDS)

    def keep(self, runner_id: int, lease_seconds: float) -> None:
        """From now on this lease; what the one before held is no more."""
        self._lease = {"registered": runner_id, "pid": os.getpid(), "lease_seconds": lease_seconds}
        self._tell()

    def say_goodbye(self) -> None:
        """The runner ends in good order: nothing has to be given back."""
        if self._link is not None:
            self._link.send(bye=0)

    def _tell(self) -> None:
        if self._link is not None and self._lease is not None:
            self._link.send(**self._lease)

    async def _start(self) -> tuple[Link, Process]:
        board = self._board.descriptor
        return await start_linked(
            "fenceline.runner.helper",
            lambda end: (end, board),
            descriptors=[board],
            environment={"FENCELINE_URL": self._url, "FENCELINE_TOKEN": self._token},
        )
