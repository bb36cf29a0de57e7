"""The process that keeps a worker's lease, seen from that worker (`lease_main` is its program)."""

import asyncio
import contextlib
import logging
import os
from asyncio.subprocess import Process
from uuid import UUID

from fenceline.delivery.contract import KeptDelivery
from fenceline.engine.engine import Engine
from fenceline.engine.running_board import RunningBoard
from fenceline.worker.process_channel import ProcessChannel, start_with_channel

log = logging.getLogger("fenceline.worker")

#: How long it has to end once it was told to.
GOODBYE_SECONDS = 0.4
#: The pause before one that ended by itself is replaced.
PAUSE_SECONDS = 0.2
#: Unless it is needed at once, it starts this long after the worker.
LATER_SECONDS = 2.0


async def obey(engine: Engine, channel: ProcessChannel) -> None:
    """Do what the keeper of the lease says, until it is gone."""
    while (message := await channel.receive()) is not None:
        if "renewed" in message:
            engine.note_renewed(message["renewed"])
        elif "cancel" in message:
            for attempt_id in message["cancel"]:
                engine.request_cancel(UUID(attempt_id))
        elif "lost" in message:
            engine.lose()
        elif "stop" in message:
            engine.stop()
        elif "hurry" in message:
            engine.hurry()


class LeaseProcess:
    def __init__(self, delivery: KeptDelivery, board: RunningBoard, engine: Engine) -> None:
        self._delivery = delivery
        self._board = board
        self._engine = engine
        self._channel: ProcessChannel | None = None
        self.ready = asyncio.Event()

    def announce(self) -> None:
        """Tell the process, if it runs, that the worker is registered: from now on its lease is to be kept."""
        lease = self._engine.lease
        if self._channel is not None and lease.worker_id:
            self._channel.send(registered=lease.worker_id, pid=os.getpid(), lease_seconds=lease.seconds)

    async def run_later(self) -> None:
        """A fresh lease needs no keeper yet, and starting a process costs most while the first jobs come in."""
        await asyncio.sleep(min(LATER_SECONDS, self._engine.lease.seconds / 10))
        await self.run()

    async def run(self) -> None:
        """Have a process keep the lease; one that ends is replaced before the lease runs out."""
        while True:
            # A start that is cancelled half way would leave a process that nobody ends, so it is seen through.
            starting = asyncio.create_task(self._start())
            try:
                channel, _process = await asyncio.shield(starting)
                self._channel = channel
                self.announce()
                if await channel.receive() is not None:
                    self.ready.set()
                await obey(self._engine, channel)
                log.error("the process that keeps the lease has ended: another is started")
            except OSError as error:
                log.error("the process that keeps the lease cannot be started (%s): trying again", error)  # noqa: TRY400 - no bug of ours
            finally:
                self._channel = None
                with contextlib.suppress(OSError):
                    await self._end(*await starting)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _end(self, channel: ProcessChannel, process: Process) -> None:
        """Seen through even if cancelled, by the end of the program's loop say: asyncio complains about processes that
        outlive the loop.
        """
        channel.send(bye=0)
        channel.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _start(self) -> tuple[ProcessChannel, Process]:
        board = self._board.descriptor
        return await start_with_channel(
            "fenceline.worker.lease_main",
            lambda end: (self._delivery.leases, end, board),
            descriptors=[board],
            environment=await self._delivery.environment(),
        )
