"""`fenceline up`: everything running in this folder, with a few jobs to look at."""

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import dsn_option
from fenceline.cli.output import console, status_text, table, text
from fenceline.cli.settings import setting_option

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fenceline.client.app import Fenceline
    from fenceline.model.job import JobRecord


@click.command()
@dsn_option
@setting_option("--port", key="up.port", default=8321, help="Port of the HTTP server; another one if it is taken.")
def up(dsn: str | None, port: int) -> None:
    """Start everything in this folder.

    The embedded database, a server and a worker, with a few sample jobs; they stay up until Ctrl-C.
    """
    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for the sample application
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_up(console(), port))


async def _up(out: "Console", port: int) -> None:
    from fenceline.cli.sample import app, enqueue_sample  # noqa: PLC0415 - keeps `--help` quick

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with app, contextlib.AsyncExitStack() as running:
        with out.status("starting PostgreSQL …"):
            dsn = await app.dsn()
            await app.migrate()
        working = asyncio.create_task(app.run_worker(grace_seconds=1.0))
        try:
            jobs = await enqueue_sample()
            with out.status("running the sample jobs …"):
                for job in jobs[:-1]:
                    await job.wait(timeout=60)
            out.print(_table([await job.get() for job in jobs]))
            out.print(f"The database is running: psql '{dsn}'", soft_wrap=True, highlight=False)
            out.print("Look at the view fenceline.jobs, or run `fenceline top` in this folder.")
            await _serve(out, running, app, port)
            out.print("A worker is running. Press Ctrl-C to stop everything.")
            await stopping.wait()
        finally:
            await running.aclose()
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working


async def _serve(out: "Console", running: contextlib.AsyncExitStack, app: "Fenceline", port: int) -> None:
    try:
        from fenceline.cli.up_server import serving  # noqa: PLC0415 - an extra
    except ImportError:
        out.print("No HTTP server: pip install 'fenceline[server]'", markup=False)
        return
    door = await running.enter_async_context(serving(app, port))
    out.print("A server is running, with a token until Ctrl-C:", highlight=False)
    out.print(f"  curl -H 'Authorization: Bearer {door.token}' {door.url}/v1/jobs", soft_wrap=True, highlight=False)


def _table(records: "list[JobRecord]") -> "Table":
    rows = table("ID", "KIND", "LANE", "STATUS", "ATTEMPT", "RESULT", may_wrap=("RESULT",))
    for record in records:
        rows.add_row(
            record.id,
            text(record.kind),
            text(record.lane),
            status_text(record.status),
            f"{record.attempt}/{record.max_attempts}",
            text(record.result),
        )
    return rows
