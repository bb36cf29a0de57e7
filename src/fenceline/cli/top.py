"""`fenceline top`: the queue on one screen, and the keys to steer it."""

import asyncio
import signal
import sys

import click

from fenceline.cli.options import with_queue
from fenceline.cli.queue import Queue
from fenceline.cli.settings import setting_option

TERMINATED = 128 + signal.SIGTERM  # as shells say it


@click.command()
@setting_option(
    "--interval", key="top.interval", type=click.FloatRange(0.1, 60), default=1.0, help="Seconds between looks."
)
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
    # So ends a closed terminal, too (see hangup): an exception out of a signal handler does not get through textual.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: screen.exit(return_code=TERMINATED))
    await screen.run_async()
    sys.exit(screen.return_code or 0)
