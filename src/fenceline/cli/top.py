"""`fenceline top`: the queue on one screen, and the keys to steer it."""

import asyncio
import os
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import with_queue
from fenceline.cli.queue import Queue
from fenceline.cli.settings import setting_option

if TYPE_CHECKING:
    from textual.app import App

TERMINATED = 128 + signal.SIGTERM  # as shells report it
#: How long the screen may take to end in order.
LAST_SECONDS = 5.0


@click.command()
@setting_option("top.interval", type=click.FloatRange(0.1, 60), default=1.0, help="Seconds between refreshes.")
@with_queue
async def top(queue: Queue, interval: float) -> None:
    """Watch lanes, jobs and workers live, and steer them.

    Arrows and Tab move, Enter opens a job, / filters, ? lists all keys, q leaves.
    """
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException("top needs a terminal: in a script, use `fenceline lanes list --json` and the like")
    try:
        from fenceline.cli.top_screen import TopApp
    except ImportError as error:
        raise click.ClickException("top needs textual: pip install 'fenceline[cli]'") from error
    screen = TopApp(queue, interval)
    _end_when_told(screen)
    await screen.run_async()
    sys.exit(screen.return_code or 0)


def _end_when_told(screen: "App[None]") -> None:
    """End the screen on SIGTERM, which is also what a closed terminal leads to (see `hangup.py`)."""
    loop = asyncio.get_running_loop()

    def end(*_given: object) -> None:
        # Not with an exception: textual lets none out of a signal handler.
        loop.call_soon_threadsafe(partial(screen.exit, return_code=TERMINATED))
        # The loop may be blocked by a terminal that is paused or gone: textual writes to it from a thread, and waits
        # when that thread falls behind.
        last_resort = threading.Timer(LAST_SECONDS, os._exit, (TERMINATED,))
        last_resort.daemon = True
        last_resort.start()

    signal.signal(signal.SIGTERM, end)
