"""`fenceline demo`: the point of it all, in less than a minute."""

import asyncio

import click

from fenceline.cli.options import dsn_option, not_over_http


@click.command()
@dsn_option
@not_over_http
@click.option("--jobs", default=5000, show_default=True, type=click.IntRange(1000), help="How many jobs.")
@click.pass_context
def demo(ctx: click.Context, dsn: str | None, jobs: int) -> None:
    """Kill and freeze workers, and lose nothing.

    Runs jobs on a PostgreSQL of its own in a temporary folder (or on --dsn, a scratch database), throttles a lane,
    kills a worker with SIGKILL, freezes another past its lease and thaws it. Handlers keep a ledger in a file that the
    queue knows nothing of. Exits 0 only if queue and ledger agree: every job done, none lost, every stale write
    refused.
    """
    from fenceline.cli.demo.play import play
    from fenceline.cli.output import console

    ctx.exit(0 if asyncio.run(play(console(), dsn, jobs)) else 1)
