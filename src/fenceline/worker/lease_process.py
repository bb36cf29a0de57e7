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

#: To end once it was told to.
GOODBYE_SECONDS = 0.4
#: Before one that ended by itself is replaced.
PAUSE_SECONDS = 0.2


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
    def __init__(self, delivery: KeptDelivery, board: RunningBoard) -> None:
        self._delivery = delivery
        self._board = board
        self._channel: ProcessChannel | None = None
        self.ready = asyncio.Event()

    def notify(self, engine: Engine) -> None:
        """The worker is registered: from now on its lease is to be kept."""
        if self._channel is not None and engine.lease.worker_id:
            lease = engine.lease
            self._channel.send(registered=lease.worker_id, pid=os.getpid(), lease_seconds=lease.seconds)

    async def run(self, engine: Engine) -> None:
        """Have a process that keeps the lease; one that ends is replaced, before the lease does."""
        while True:
            # Cancelled in the middle of the start, nobody would be left to end the process: so that is seen through.
            starting = asyncio.create_task(self._start())
            try:
                channel, _process = await asyncio.shield(starting)
                self._channel = channel
                self.notify(engine)
                if await channel.receive() is not None:
                    self.ready.set()
                await obey(engine, channel)
                log.error("the process that keeps the lease has ended: another is started")
            except OSError as error:
                log.error("the process that keeps the lease cannot be started (%s): trying again", error)  # noqa: TRY400 - no bug of ours
            finally:
                self._channel = None
                with contextlib.suppress(OSError):
                    await self._end(*await starting)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _end(self, channel: ProcessChannel, process: Process) -> None:
        channel.send(bye=0)
        channel.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await process.wait()
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
