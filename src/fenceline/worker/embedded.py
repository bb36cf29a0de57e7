"""A worker inside another program's process: `await app.run_worker()`.

It does what a child of `fenceline worker` does. Its lease is kept by a helper process, so that a blocked event loop
does not lose it, and when this process dies the helper gives back what it held. The promise is weaker in one point: a
handler that ignores being stopped cannot be killed, only fenced off.
"""

import asyncio
import logging
import os
from asyncio.subprocess import Process

from fenceline.client.app import Fenceline
from fenceline.client.scheduler import declare_schedules
from fenceline.database import worker_calls
from fenceline.worker.board import Board
from fenceline.worker.child import Child
from fenceline.worker.hooks import lifespan
from fenceline.worker.line import Line
from fenceline.worker.link import Link, start_linked
from fenceline.worker.settings import WorkerSettings

log = logging.getLogger("fenceline.worker")

#: After the grace period and being asked to stop, handlers have so long before they are left behind, fenced off.
LAST_SECONDS = 1.0
#: The helper process starts so long after the worker.
HELPER_PAUSE_SECONDS = 2.0
#: The database has so long to take note of the end; what it cannot be told, the lease does.
GOODBYE_SECONDS = 0.7


async def run_worker(app: Fenceline, settings: WorkerSettings, import_name: str | None = None) -> None:
    """Work until cancelled: then stop claiming, let handlers finish within the grace period, hand back the rest.

    A worker that has lost its lease, because the database could not be reached, starts anew.
    """
    await declare_schedules(app)
    async with lifespan(app):
        while True:
            await _work_until_lost(app, settings, import_name)
            log.warning("the worker has lost its lease and starts anew")


async def _work_until_lost(app: Fenceline, settings: WorkerSettings, import_name: str | None) -> None:
    board = Board(entries=settings.concurrency + settings.threads + settings.isolated + 64)
    child = Child(app, settings, board, app_name=import_name)
    worker_id = await child.register()
    keeping = asyncio.create_task(_keep_lease(app, settings, board, child))
    working = asyncio.create_task(child.run())
    try:
        await asyncio.shield(working)
    finally:
        child.stop()
        await asyncio.wait({working}, timeout=settings.grace_seconds)
        child.hurry()
        await asyncio.wait({working}, timeout=LAST_SECONDS)
        working.cancel()
        await _say_goodbye(app, worker_id, child.fail_kinds)
        keeping.cancel()
        await asyncio.wait({keeping})
        child.close()
        await child.wait_closed()
        board.close()


async def _keep_lease(app: Fenceline, settings: WorkerSettings, board: Board, child: Child) -> None:
    """Have a helper process keep the lease, and do what it says, until cancelled."""
    # A fresh lease needs nobody yet, and the start of a process costs most when the first jobs come.
    await asyncio.sleep(min(HELPER_PAUSE_SECONDS, settings.lease_seconds / 10))
    # Cancelled in the middle of the start, nobody would be left to wait for the process: so the start is seen through.
    starting = asyncio.create_task(_start_helper(app, settings, board))
    try:
        link, _ = await asyncio.shield(starting)
        link.send(registered=child.worker_id, pid=os.getpid())
        await child.obey(link)
        log.error("the helper that keeps the lease has died: the worker stops")
        child.lose()
    finally:
        link, helper = await starting
        link.send(bye=0)
        link.close()
        await helper.wait()


async def _say_goodbye(app: Fenceline, worker_id: int, fail_kinds: list[str]) -> None:
    line = Line("goodbye", app.caller().connect)
    try:
        async with asyncio.timeout(GOODBYE_SECONDS):
            await line.call(worker_calls.stop_worker(worker_id, fail_kinds))
    except TimeoutError:
        log.warning("the database did not hear that worker %s has stopped: its lease will", worker_id)
    finally:
        line.close()


async def _start_helper(app: Fenceline, settings: WorkerSettings, board: Board) -> tuple[Link, Process]:
    return await start_linked(
        "fenceline.worker.helper",
        lambda end: (end, board.descriptor, settings.lease_seconds),
        descriptors=[board.descriptor],
        environment={"FENCELINE_DSN": await app.dsn()},
    )
