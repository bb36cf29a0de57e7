"""The program of a child process: `python -m fenceline.worker.process APP SETTINGS LINK BOARD`."""

import asyncio
import json
import logging
import os
import signal
import sys
from typing import Any

from fenceline.worker.application import load_app
from fenceline.worker.board import Board
from fenceline.worker.child import Child
from fenceline.worker.hooks import StartupFailed, lifespan
from fenceline.worker.link import Link
from fenceline.worker.logs import configure_logging
from fenceline.worker.output import redact_output
from fenceline.worker.parent import die_with_parent
from fenceline.worker.settings import WorkerSettings

#: How often counts are sent to the supervisor, where metrics are wanted.
COUNT_SECONDS = 1.0


async def obey(link: Link, child: Child) -> None:
    """Do what the supervisor says; without one there is nothing to live for."""
    await child.obey(link)
    os._exit(1)


async def work(app_name: str, settings: dict[str, Any], link_descriptor: int, board_descriptor: int) -> int:
    once = settings.pop("once")
    if settings["lanes"] is not None:
        settings["lanes"] = tuple(settings["lanes"])
    link = await Link.from_descriptor(link_descriptor)
    app = load_app(app_name)
    os.set_inheritable(board_descriptor, False)
    chosen = WorkerSettings(**settings)
    child = Child(app, chosen, Board(board_descriptor), app_name=app_name)
    async with lifespan(app):
        worker_id = await child.register()
        configure_logging(chosen.log_format, worker=worker_id)
        link.send(registered=worker_id, fail_kinds=child.fail_kinds)
        helpers = [asyncio.create_task(obey(link, child))]
        if chosen.metrics:
            helpers.append(asyncio.create_task(send_counts(link, child)))
        code = 0
        if once:
            done = await child.run_one()
            code = 2 if done is None else 0 if done else 1
        else:
            await child.run()
    if chosen.metrics:
        link.send(counts=child.take_counts())
    link.send(bye=code)
    for helper in helpers:
        helper.cancel()
    child.close()
    await app.close()
    return code


async def send_counts(link: Link, child: Child) -> None:
    while True:
        await asyncio.sleep(COUNT_SECONDS)
        link.send(counts=child.take_counts())


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop where that is installed."""
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
    app_name, given, link, board = sys.argv[1:5]
    settings = json.loads(given)
    redact_output()
    configure_logging(settings["log_format"])
    code = 1
    try:
        code = asyncio.Runner(loop_factory=new_event_loop).run(work(app_name, settings, int(link), int(board)))
    except StartupFailed as error:
        logging.getLogger("fenceline.worker").error("%s", error, exc_info=error.__cause__)  # noqa: TRY400 - the cause
    except Exception:
        logging.getLogger("fenceline.worker").exception("the worker process fails")
    finally:
        # At once: a thread that ignores its end would keep the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
