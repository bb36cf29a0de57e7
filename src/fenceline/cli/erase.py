"""`fenceline jobs erase`."""

import click

from fenceline.cli.bulk import ask
from fenceline.cli.options import with_queue, yes_option
from fenceline.cli.queue import Queue
from fenceline.model.counted import counted
from fenceline.model.public_id import parse_id


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--reason", help="Reason, recorded in the audit log.")
@yes_option
@with_queue
async def erase(queue: Queue, ids: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Replace the args of finished jobs by a marker, for good.

    Results, logs and snapshots stay; an erased job cannot be retried. An unfinished job is refused: cancel it first.
    """
    for job_id in ids:
        parse_id(job_id)  # a mistyped one stops us before anything is done
    if not yes:
        ask(f"erase the args of {counted(len(ids), 'job')} for good")
    for job_id in ids:
        await queue.erase(job_id, reason=reason)
        click.echo(f"{job_id} erased")
