"""`fenceline bench`."""

import sys
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import json_option, with_app
from fenceline.cli.output import console, print_json, print_table, table
from fenceline.client.app_parts import app_parts

if TYPE_CHECKING:
    from fenceline.app import Fenceline
    from fenceline.cli.bench_run import Rate

MAX_JOBS = 1_000_000


@click.command()
@click.option(
    "--jobs",
    default=10_000,
    show_default=True,
    type=click.IntRange(1, MAX_JOBS),
    help="How many jobs to measure with.",
)
@json_option
@with_app
async def bench(app: "Fenceline", jobs: int, as_json: bool) -> None:
    """Measure the speed of this database.

    Over one connection: enqueues one by one (300), enqueues 500 at a time, and claims and finishes, 500 at a time,
    without a handler.

    It writes --jobs small jobs and 300 more into a lane of its own, fenceline.bench, and signs on a worker that claims
    them. At the end, also on Ctrl-C, jobs and lane are deleted and the worker is signed off; what a run that was killed
    left behind, the next one removes. What remains: two workers that are signed off, lines in the audit (the lane, and
    one per 500 deleted jobs), and space that autovacuum gives back.

    Jobs of others are not touched, but while it lasts they share the database's speed with the measurement. Needs the
    database roles of a worker and of an administrator.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from fenceline.cli.bench_run import SINGLES, Bench
    from fenceline.database import calls

    settings = await app_parts(app).database().call(calls.system.server_settings())
    with Progress(
        TextColumn("{task.description:<30}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("", total=2 * (jobs + min(SINGLES, jobs)))

        def show(name: str, count: int) -> None:
            # What is deleted at the end was counted before: the bar is full then.
            progress.update(task, description=name, advance=0 if name == "tidying up" else count)

        rates = await Bench(app, actor=app_parts(app).actor, show=show).run(jobs)
    if as_json:
        print_json({"settings": settings, "results": rates})
    else:
        _print(rates, settings)


def _print(rates: "list[Rate]", settings: dict[str, str]) -> None:
    shown = table("", "JOBS", "JOBS/S", "PER CALL", "95 %", right=("JOBS", "JOBS/S", "PER CALL", "95 %"))
    for rate in rates:
        shown.add_row(
            rate.measurement,
            f"{rate.jobs:,}",
            f"{rate.jobs_per_second:,.0f}",
            f"{rate.median_ms:.2f} ms",
            f"{rate.p95_ms:.2f} ms",
        )
    print_table(shown)
    click.echo(
        f"PostgreSQL {settings['server_version']}, fsync {settings['fsync']}, "
        f"synchronous_commit {settings['synchronous_commit']}; one connection, jobs of 100 bytes"
    )
