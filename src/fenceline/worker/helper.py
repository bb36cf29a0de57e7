"""The helper of an embedded worker: keeps its lease, and gives back what it held when it dies.

`python -m fenceline.worker.helper LINK BOARD LEASE`, with the DSN in `$FENCELINE_DSN`.
"""

import asyncio
import logging
import signal
import sys

from fenceline.client.app import Fenceline
from fenceline.worker.board import Board
from fenceline.worker.keeper import Keeper, Kept
from fenceline.worker.link import Link


async def keep(link_descriptor: int, board_descriptor: int, lease_seconds: float) -> None:
    app = Fenceline()
    link = await Link.from_descriptor(link_descriptor)
    keeper = Keeper(lambda: app.caller().connect(), lease_seconds)
    keeping = asyncio.create_task(keeper.run())
    kept: Kept | None = None
    in_order = False
    while (message := await link.receive()) is not None:
        if "registered" in message:
            kept = keeper.keep(message["registered"], message["pid"], link, Board(board_descriptor))
        in_order = in_order or "bye" in message
    keeping.cancel()
    await asyncio.wait({keeping})
    if kept is not None and not in_order:
        await keeper.report_crash(kept, None)
    keeper.close()
    await app.close()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when its worker does
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(keep(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))


if __name__ == "__main__":
    main()
