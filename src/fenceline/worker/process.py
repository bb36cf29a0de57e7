"""The program of a child process: `python -m fenceline.worker.process APP SETTINGS LINK BOARD`."""

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
from typing import Any
from uuid import UUID

from fenceline.worker.application import load_app
from fenceline.worker.board import Board
from fenceline.worker.child import Child
from fenceline.worker.link import Link
from fenceline.worker.settings import WorkerSettings

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """When the supervisor is killed nobody keeps our lease, so the kernel ends us too: also in the middle of a blocked
    loop or with the GIL held. Elsewhere than on Linux the end of the link does it, a little later.
    """
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


async def obey(link: Link, child: Child) -> None:
    """Do what the supervisor says, until it is gone."""
    while (message := await link.receive()) is not None:
        if "renewed" in message:
            child.renewed(message["renewed"])
        elif "cancel" in message:
            child.cancel([UUID(attempt_id) for attempt_id in message["cancel"]])
        elif "lost" in message:
            child.lose()
        elif "stop" in message:
            child.stop()
        elif "hurry" in message:
            child.hurry()
    os._exit(1)


async def work(app_name: str, settings: dict[str, Any], link_descriptor: int, board_descriptor: int) -> int:
    once = settings.pop("once")
    if settings["lanes"] is not None:
        settings["lanes"] = tuple(settings["lanes"])
    link = await Link.from_descriptor(link_descriptor)
    app = load_app(app_name)
    os.set_inheritable(board_descriptor, False)
    child = Child(app, WorkerSettings(**settings), Board(board_descriptor))
    worker_id = await child.register()
    link.send(registered=worker_id, fail_kinds=child.fail_kinds)
    obeying = asyncio.create_task(obey(link, child))
    code = 0
    if once:
        done = await child.run_one()
        code = 2 if done is None else 0 if done else 1
    else:
        await child.run()
    link.send(bye=code)
    obeying.cancel()
    child.close()
    await app.close()
    return code


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def main() -> None:
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the supervisor decides
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    app_name, settings, link, board = sys.argv[1:5]
    code = 1
    try:
        code = asyncio.Runner(loop_factory=new_event_loop).run(
            work(app_name, json.loads(settings), int(link), int(board))
        )
    except Exception:
        logging.getLogger("fenceline.worker").exception("the worker process fails")
    finally:
        # At once: a thread that ignores its end would keep the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
