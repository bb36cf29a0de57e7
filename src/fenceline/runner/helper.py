"""The helper of a runner: keeps its lease while its event loop is blocked, and gives back what it held when it dies.

`python -m fenceline.runner.helper LINK BOARD`, with server and token in `$FENCELINE_URL` and `$FENCELINE_TOKEN`. The
runner hears {"ready"}, and tells {"registered": id, "pid", "lease_seconds"}, anew whenever it registers, and at last
{"bye"}.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from typing import Any

from fenceline.errors import FencelineError
from fenceline.runner.client import Client
from fenceline.worker.board import Board
from fenceline.worker.keeper import BEATS_PER_LEASE, is_stopped
from fenceline.worker.link import Link

log = logging.getLogger("fenceline.runner")

#: How long the server has to be told of the runner's death; then its lease does that.
LAST_SECONDS = 30.0


class Helper:
    def __init__(self, client: Client, link: Link, board: Board) -> None:
        self._client = client
        self._link = link
        self._board = board
        self._runner: dict[str, Any] | None = None
        self._news = asyncio.Event()

    async def run(self) -> None:
        beating = asyncio.create_task(self._beat())
        self._link.send(ready=True)
        in_order = False
        while (message := await self._link.receive()) is not None:
            if "registered" in message:
                self._runner = message
                self._news.set()
            in_order = in_order or "bye" in message
        beating.cancel()
        await asyncio.wait({beating})
        if self._runner is not None and not in_order:
            await self._report_crash(self._runner["registered"])

    async def _beat(self) -> None:
        while True:
            runner = self._runner
            if runner is None:
                await self._news.wait()
                continue
            # A frozen process must lose its lease: it would wake up believing that it still holds its jobs.
            if not is_stopped(runner["pid"]):
                with contextlib.suppress(FencelineError):  # the runner itself finds out, and decides
                    seconds = max(runner["lease_seconds"] / BEATS_PER_LEASE, 1.0)
                    path = f"/v1/runners/{runner['registered']}/heartbeat"
                    await self._client.ask_once("POST", path, answer_seconds=seconds)
            await asyncio.sleep(runner["lease_seconds"] / BEATS_PER_LEASE)

    async def _report_crash(self, runner_id: int) -> None:
        suspects = [str(attempt_id) for attempt_id in self._board.read()]
        body = json.dumps({"suspects": suspects, "error": {"message": "the runner's process died"}})
        with contextlib.suppress(FencelineError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._client.ask("POST", f"/v1/runners/{runner_id}/crash", body)
                log.error("runner %s died: its attempts are given back, %s of them suspects", runner_id, len(suspects))


async def keep(link_descriptor: int, board_descriptor: int) -> None:
    client = Client(os.environ["FENCELINE_URL"], os.environ["FENCELINE_TOKEN"])
    try:
        await Helper(client, await Link.from_descriptor(link_descriptor), Board(board_descriptor)).run()
    finally:
        await client.close()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when its runner does
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(keep(int(sys.argv[1]), int(sys.argv[2])))


if __name__ == "__main__":
    main()
