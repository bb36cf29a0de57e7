"""`fenceline up`: everything running in this folder, with a few jobs to look at."""

import asyncio
import contextlib
import signal

import click
from rich.console import Console
from rich.table import Table

from fenceline.model.job import JobRecord
from fenceline.model.status import Status


@click.command()
def up() -> None:
    """Start everything in this folder.

    The embedded database and a worker, with a few sample jobs; they stay up until Ctrl-C.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_up(Console()))


async def _up(console: Console) -> None:
    from fenceline.cli.sample import app, enqueue_sample  # noqa: PLC0415 - keeps `--help` quick

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with app:
        with console.status("starting PostgreSQL …"):
            dsn = await app.dsn()
            await app.migrate()
        working = asyncio.create_task(app.run_worker(grace_seconds=1.0))
        try:
            jobs = await enqueue_sample()
            with console.status("running the sample jobs …"):
                for job in jobs[:-1]:
                    await job.wait(timeout=60)
            console.print(_table([await job.get() for job in jobs]))
            console.print(f"The database is running: psql '{dsn}'", soft_wrap=True, highlight=False)
            console.print("Look at the view fenceline.jobs.", end=" ")
            console.print("A worker is running. Press Ctrl-C to stop both.")
            await stopping.wait()
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working


def _table(records: list[JobRecord]) -> Table:
    table = Table(title="Sample jobs")
    for column in ("id", "kind", "lane", "status", "attempt", "result"):
        table.add_column(column, no_wrap=column != "result")
    for record in records:
        colour = (
            "green" if record.status.is_success else "yellow" if record.status is Status.AWAITING_APPROVAL else "red"
        )
        table.add_row(
            record.id,
            record.kind,
            record.lane,
            f"[{colour}]{record.status}[/{colour}]",
            f"{record.attempt}/{record.max_attempts}",
            "" if record.result is None else str(record.result),
        )
    return table
