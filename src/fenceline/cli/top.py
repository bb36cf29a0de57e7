"""`fenceline top`: the queue on one screen, and the keys to steer it."""

import sys

import click

from fenceline.cli.options import with_queue
from fenceline.cli.queue import Queue
from fenceline.cli.settings import setting_option


@click.command()
@setting_option(
    "--interval", key="top.interval", type=click.FloatRange(0.1, 60), default=1.0, help="Seconds between looks."
)
@with_queue
async def top(queue: Queue, interval: float) -> None:
    """Watch lanes, jobs and workers live, and steer them.

    Arrows and Tab move; d drains and r resumes a lane; c cancels a job, p changes its priority; q leaves.
    """
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException("top needs a terminal: programs read `fenceline lanes list --json` and the like")
    try:
        from fenceline.cli.top_screen import TopApp  # noqa: PLC0415 - textual is an extra
    except ImportError as error:
        raise click.ClickException("top needs textual: pip install 'fenceline[cli]'") from error
    await TopApp(queue, interval).run_async()
