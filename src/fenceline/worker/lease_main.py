"""The program that keeps the lease of a runner, or of a worker inside another program, and gives back its jobs when it
dies: `python -m fenceline.worker.lease_main DELIVERY CHANNEL BOARD`.

DELIVERY is `postgres` or `http`; the environment says how to reach the database or the server. It sends {"ready"} and
the messages of `process_channel`; the worker sends {"registered": id, "pid", "lease_seconds"} and, at its end, {"bye"}.
"""

import asyncio
import contextlib
import logging
import os
import sys

from fenceline.client.app_parts import app_parts
from fenceline.context.log_output import configure_logging
from fenceline.delivery.contract import Leases
from fenceline.engine.running_board import RunningBoard
from fenceline.errors import FencelineError
from fenceline.model.worker_settings import BEATS_PER_LEASE
from fenceline.worker.lease_keeper import LeaseKeeper
from fenceline.worker.own_process import ignore_signals
from fenceline.worker.process_channel import ProcessChannel


def leases_of(delivery: str, lease_seconds: float) -> Leases:
    answer_seconds = max(lease_seconds / BEATS_PER_LEASE, 1.0)
    if delivery == "http":
        from fenceline.delivery.http_leases import HttpLeases  # noqa: PLC0415 - an extra

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request
        return HttpLeases.from_environment(os.environ, answer_seconds)
    from fenceline.client.app import App  # noqa: PLC0415 - not needed over HTTP
    from fenceline.delivery.postgres_leases import PostgresLeases  # noqa: PLC0415 - as above

    app = App()
    return PostgresLeases(lambda settings: app_parts(app).database().connect(settings), answer_seconds)


async def keep(delivery: str, channel_descriptor: int, board_descriptor: int) -> None:
    channel = await ProcessChannel.from_descriptor(channel_descriptor)
    channel.send(ready=True)
    keeping: asyncio.Task[None] | None = None
    in_order = False
    while (message := await channel.receive()) is not None:
        if "registered" in message:
            leases = leases_of(delivery, message["lease_seconds"])
            keeper = LeaseKeeper(leases, message["lease_seconds"])
            board = RunningBoard(board_descriptor)
            kept = keeper.keep(message["registered"], message["pid"], channel, board, may_kill=False)
            keeping = asyncio.create_task(keeper.run())
        in_order = in_order or "bye" in message
    if keeping is None:
        return
    keeping.cancel()
    await asyncio.wait({keeping})
    if not in_order:
        with contextlib.suppress(FencelineError, TimeoutError):  # the lease will end
            await keeper.report_crash(kept, None)
    await leases.close()


def main() -> None:
    ignore_signals()  # it ends when its worker does
    configure_logging("text", level=logging.WARNING)
    delivery, channel, board = sys.argv[1:4]
    asyncio.run(keep(delivery, int(channel), int(board)))


if __name__ == "__main__":
    main()
