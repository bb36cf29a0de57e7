"""The program of a child process: `python -m fenceline.worker.child_main APP SETTINGS CHANNEL BOARD`."""

import asyncio
import json
import logging
import os
import sys

from fenceline.client.app import App
from fenceline.client.application import AppNotFound, load_app
from fenceline.delivery.messages import database_delivery
from fenceline.engine.engine import Engine
from fenceline.engine.running_board import RunningBoard
from fenceline.model.worker_settings import WorkerSettings
from fenceline.worker import rekey
from fenceline.worker.isolated_pool import IsolatedPool
from fenceline.worker.lease_process import obey
from fenceline.worker.lifespan import StartupFailed, lifespan
from fenceline.worker.own_process import configure_worker_logging, die_with_parent, end, ignore_signals, new_event_loop
from fenceline.worker.process_channel import BlockingChannel, ProcessChannel

#: How often counts are sent to the supervisor, if metrics are on.
COUNT_SECONDS = 1.0


async def follow(channel: ProcessChannel, engine: Engine) -> None:
    """Do what the supervisor says; end with it."""
    await obey(engine, channel)
    os._exit(1)


async def work(
    app: App, app_name: str, settings: WorkerSettings, channel_descriptor: int, board_descriptor: int, *, once: bool
) -> int:
    channel = await ProcessChannel.from_descriptor(channel_descriptor)
    rekey.add_to(app)
    os.set_inheritable(board_descriptor, False)
    delivery = database_delivery(app, transactions=settings.transactions, owns_app=True)
    isolated = IsolatedPool(app_name, settings, has_database=True)
    engine = Engine(app, delivery, settings, RunningBoard(board_descriptor), isolated=isolated)
    async with lifespan(app):
        worker_id = (await engine.register()).worker_id
        configure_worker_logging(settings, worker_id)
        channel.send(registered=worker_id, fail_kinds=engine.fail_kinds)
        helpers = [asyncio.create_task(follow(channel, engine))]
        if settings.metrics:
            helpers.append(asyncio.create_task(send_counts(channel, engine)))
        code = 0
        if once:
            done = await engine.run_one()
            code = 2 if done is None else 0 if done else 1
        else:
            await engine.run()
    if settings.metrics:
        channel.send(counts=engine.take_counts())
    channel.send(bye=code)
    for helper in helpers:
        helper.cancel()
    await engine.close()
    await app.close()
    return code


async def send_counts(channel: ProcessChannel, engine: Engine) -> None:
    while True:
        await asyncio.sleep(COUNT_SECONDS)
        channel.send(counts=engine.take_counts())


def main() -> None:
    die_with_parent()
    ignore_signals()
    app_name, settings_text, channel, board = sys.argv[1:5]
    options = json.loads(settings_text)
    once = options.pop("once")
    settings = WorkerSettings.from_json(options)
    configure_worker_logging(settings)
    code = 1
    try:
        app = load_app(app_name)  # without a running event loop, as in the supervisor
        working = work(app, app_name, settings, int(channel), int(board), once=once)
        code = asyncio.Runner(loop_factory=new_event_loop).run(working)
    except AppNotFound as error:
        BlockingChannel(int(channel)).send(unloadable=str(error))
    except StartupFailed as error:
        logging.getLogger("fenceline.worker").error("%s", error, exc_info=error.__cause__)  # noqa: TRY400 - the cause
    except Exception:
        logging.getLogger("fenceline.worker").exception("the worker process fails")
    finally:
        end(code)


if __name__ == "__main__":
    main()
