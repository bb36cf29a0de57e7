"""`fenceline up`: everything running in this folder, with a few jobs to look at."""

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import dsn_option, not_over_http
from fenceline.cli.output import console, print_table, status_text, table, text, to_json
from fenceline.cli.settings import setting_option

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fenceline.app import Fenceline
    from fenceline.cli.up_server import Door
    from fenceline.model.job import JobRecord


@click.command()
@dsn_option
@not_over_http
@setting_option("up.port", default=8321, help="Port of the HTTP server; another one if it is taken.")
def up(dsn: str | None, port: int) -> None:
    """Start everything in this folder.

    The embedded database, a server and a worker, with a few sample jobs; they stay up until Ctrl-C. What is in the
    database stays in ./.fenceline/.
    """
    if dsn is not None:
        os.environ["FENCELINE_DSN"] = dsn  # for the sample application
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_up(console(), port))
        click.echo("Stopped.")


async def _up(out: "Console", port: int) -> None:
    from fenceline.cli.sample import app, enqueue_sample

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with app, contextlib.AsyncExitStack() as running:
        with out.status("starting PostgreSQL …"):
            # The first call migrates an embedded database; any other is migrated by `fenceline migrate` only.
            await app.system.depth()
        working = asyncio.create_task(app.run_worker(grace_seconds=1.0))
        try:
            jobs = await enqueue_sample()
            with out.status("running the sample jobs …"):
                for job in jobs[:-1]:
                    await job.wait(timeout=60)
            print_table(_table([await job.get() for job in jobs]), first_to_go=("ATTEMPT", "LANE"))
            door = await _serve(running, app, port)
            for line in _greeting(await app.dsn(), jobs[-1].id, door):
                out.print(line, soft_wrap=True, markup=False)
            await stopping.wait()
        finally:
            with out.status("stopping …"):
                await running.aclose()
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working


async def _serve(running: contextlib.AsyncExitStack, app: "Fenceline", port: int) -> "Door | None":
    try:
        from fenceline.cli.up_server import serving
    except ImportError:
        return None
    return await running.enter_async_context(serving(app, port))


def _greeting(dsn: str, waiting: str, door: "Door | None") -> list[str]:
    """What is running, and what to try first."""
    server = "not running: pip install 'fenceline[server]'" if door is None else door.url
    lines = [
        "",
        *(
            []
            if door is None
            else [f"dashboard {door.login}", "          (this link signs you in once, within ten minutes)"]
        ),
        f"server    {server}",
        "worker    runs the kinds greet, flaky and compact",
        f"database  psql '{dsn}'",
        "",
        "Try in another terminal, in this folder:",
        "  fenceline top",
        f"  fenceline jobs approve '{waiting}'",
        """  fenceline enqueue greet --args '{"name": "you"}'""",
    ]
    if os.environ.get("FENCELINE_DSN"):
        lines.insert(-3, f"  export FENCELINE_DSN='{dsn}'")
    if door is not None:
        lines.append("  fenceline token create --role operator --name you   # for curl and other programs")
    return [*lines, "", "Press Ctrl-C to stop everything."]


def _table(records: "list[JobRecord]") -> "Table":
    rows = table("ID", "KIND", "LANE", "STATUS", "ATTEMPT", "RESULT", may_wrap=("RESULT",))
    for record in records:
        rows.add_row(
            record.id,
            text(record.kind),
            text(record.lane),
            status_text(record.status),
            f"{record.attempt}/{record.max_attempts}",
            "" if record.result is None else text(to_json(record.result, indent=None)),
        )
    return rows
