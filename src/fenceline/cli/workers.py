"""`fenceline workers`, `fenceline drain` and `fenceline resume`."""

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import ago, duration, print_json, print_table, table, text
from fenceline.cli.queue import Queue
from fenceline.model.records import WorkerRecord


@click.command()
@click.option("--stopped", is_flag=True, help="Include the last 100 that stopped or were lost.")
@json_option
@with_queue
async def workers(queue: Queue, stopped: bool, as_json: bool) -> None:
    """List workers and the jobs they hold."""
    found = await queue.system.workers(stopped=stopped)
    if as_json:
        print_json({"items": found})
        return
    if not found:
        click.echo("No worker is signed on: start one with `fenceline worker APP`.", err=True)
        return
    rows = table("WORKER", "STATE", "RUNNING", "LANES", "VERSION", "STARTED", "HEARTBEAT", "LEASE", right=("RUNNING",))
    for worker in found:
        gone = worker.stopped_at is not None
        left = worker.lease_seconds_left
        late = not gone and left is not None and left < 0
        rows.add_row(
            text(worker.name),
            _state(worker, gone=gone, late=late),
            str(worker.running),
            "all" if worker.lanes is None else text(", ".join(worker.lanes)),
            text(worker.version),
            ago(worker.started_at),
            ago(worker.heartbeat_at),
            "" if gone or left is None else f"{duration(left)} left",
        )
    print_table(rows, first_to_go=("VERSION", "STARTED", "LEASE", "HEARTBEAT"))


def _state(worker: WorkerRecord, *, gone: bool, late: bool) -> str:
    if gone:
        return "[dim]stopped[/]"
    if late:
        return "[red]lease over[/]"
    if worker.blocked_seconds is None:
        return "[green]alive[/]"
    by = f" by {worker.blocked_by}" if worker.blocked_by else ""
    return f"[yellow]blocked for {duration(worker.blocked_seconds)}{by}[/]"


@click.command()
@click.option("--reason", help="Reason, recorded in the audit log.")
@with_queue
async def drain(queue: Queue, reason: str | None) -> None:
    """Refuse new jobs from outside.

    What is there goes on: claims, retries, children, schedules. `fenceline lanes drain` stops the claims of a lane.
    """
    await queue.system.drain(reason)
    click.echo("draining: new jobs are refused until `fenceline resume`")


@click.command()
@with_queue
async def resume(queue: Queue) -> None:
    """Accept new jobs again."""
    await queue.system.resume()
    click.echo("new jobs are accepted")
