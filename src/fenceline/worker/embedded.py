"""A worker inside another program's process: `await app.run_worker()`.

It does what a child of `fenceline worker` does. Its lease is kept by a helper process, so that a blocked event loop
does not lose it, and when this process dies the helper gives back what it held. The promise is weaker in one point: a
handler that ignores being stopped cannot be killed, only fenced off.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from asyncio.subprocess import Process
from uuid import UUID

from fenceline.client.app import Fenceline
from fenceline.database import worker_calls
from fenceline.worker.board import Board
from fenceline.worker.child import Child
from fenceline.worker.line import Line
from fenceline.worker.link import Link
from fenceline.worker.settings import WorkerSettings

log = logging.getLogger("fenceline.worker")


async def run_worker(app: Fenceline, settings: WorkerSettings) -> None:
    """Work until cancelled: then stop claiming, let handlers finish within the grace period, hand back the rest."""
    board = Board()
    child = Child(app, settings, board)
    worker_id = await child.register()
    link, helper = await _start_helper(app, settings, board)
    link.send(registered=worker_id, pid=os.getpid())
    obeying = asyncio.create_task(_obey(link, child))
    working = asyncio.create_task(child.run())
    try:
        await asyncio.shield(working)
    finally:
        child.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.grace_seconds):
                await asyncio.shield(working)
        child.hurry()
        await asyncio.wait({working}, timeout=1.0)
        working.cancel()
        obeying.cancel()
        line = Line("goodbye", app.caller().connect)
        await line.call(worker_calls.stop_worker(worker_id, child.fail_kinds))
        line.close()
        link.send(bye=0)
        link.close()
        child.close()
        await helper.wait()
        board.close()


async def _start_helper(app: Fenceline, settings: WorkerSettings, board: Board) -> tuple[Link, Process]:
    ours, theirs = socket.socketpair()
    helper = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fenceline.worker.helper", str(theirs.fileno()), str(board.descriptor),
        str(settings.lease_seconds),
        env={**os.environ, "FENCELINE_DSN": await app.dsn()},
        pass_fds=(theirs.fileno(), board.descriptor),
        start_new_session=True,
    )  # fmt: skip
    theirs.close()
    return await Link.open(ours), helper


async def _obey(link: Link, child: Child) -> None:
    while (message := await link.receive()) is not None:
        if "cancel" in message:
            child.cancel([UUID(attempt_id) for attempt_id in message["cancel"]])
        elif "lost" in message:
            child.lose()
    log.error("the helper that keeps the lease has died: the worker stops")
    child.lose()
