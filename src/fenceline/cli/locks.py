"""`fenceline locks` and `fenceline jobs locks`: what is held, by jobs or by code outside them, and who waits for it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import duration, print_json, print_table, table, text
from fenceline.cli.queue import Queue

if TYPE_CHECKING:
    from fenceline.model.job import LockRecord


@click.command()
@json_option
@with_queue
async def locks(queue: Queue, as_json: bool) -> None:
    """List the locks, resource locks and keys in use, and who waits."""
    _print(await queue.system.locks(), as_json=as_json)


@click.command("locks")
@click.argument("job_id", metavar="ID")
@json_option
@with_queue
async def locks_of_job(queue: Queue, job_id: str, as_json: bool) -> None:
    """List what the job ID holds, and what it waits for, with the holder."""
    _print(await queue.job(job_id).locks(), as_json=as_json)


def _print(found: "Sequence[LockRecord]", *, as_json: bool) -> None:
    if as_json:
        print_json({"items": found})
        return
    rows = table("WHAT", "NAME", "TENANT", "WHO", "", "FOR", "HOLDER")
    now = datetime.now(UTC)
    for lock in found:
        rows.add_row(
            text(lock.what),
            text(lock.name if lock.namespace is None else f"{lock.namespace}/{lock.name}"),
            text(lock.tenant),
            text(lock.job or lock.actor),
            "holds" if lock.held else "[yellow]waits[/]",
            "" if lock.since is None else duration((now - lock.since).total_seconds()),
            text(lock.holder or lock.holder_actor),
        )
    if found:
        print_table(rows, first_to_go=("TENANT",))
    else:
        click.echo("No locks.", err=True)
