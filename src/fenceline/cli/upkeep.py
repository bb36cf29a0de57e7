"""`fenceline prune` and `sweep`: by hand, what workers do by themselves. `retention`, `limits`: what they go by."""

from typing import TYPE_CHECKING

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import console, print_json, print_table, table, text

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue

ENDS = ("succeeded", "succeeded_with_errors", "failed", "cancelled")
DAY_SECONDS = 86400


@click.command()
@click.option("--limit", default=10_000, show_default=True, type=click.IntRange(1), help="Rows deleted per step.")
@json_option
@with_queue
async def prune(queue: "Queue", limit: int, as_json: bool) -> None:
    """Forget finished jobs whose retention is over.

    Workers do this once a minute. A day whose jobs are all over is dropped whole; elsewhere rows are deleted.
    """
    total = 0
    with console(stderr=True).status("pruning …") as status:
        while forgotten := await queue.prune(limit):
            total += forgotten
            status.update(f"pruning … {total:,} jobs forgotten")
    if as_json:
        print_json({"pruned": total})
    else:
        click.echo(f"{total:,} jobs forgotten")


@click.command()
@json_option
@with_queue
async def sweep(queue: "Queue", as_json: bool) -> None:
    """Take back the jobs of workers that are gone.

    Also those whose cancel grace is over, and those that their lane calls stale. Workers do this twice a second.
    """
    swept = await queue.sweep()
    if as_json:
        print_json({"swept": swept})
    else:
        click.echo(f"{swept:,} attempts taken back")


@click.command()
@click.option("--days", type=click.FloatRange(min=0), help="Keep finished jobs so long; 0.5 is twelve hours.")
@click.option("--kind", help="Of this kind; without it: the default of all kinds.")
@click.option("--status", type=click.Choice(ENDS), help="Only jobs of the kind that ended like this.")
@click.option("--reset", is_flag=True, help="Back to what the kind's decorator or the default says.")
@json_option
@with_queue
async def retention(
    queue: "Queue", days: float | None, kind: str | None, status: str | None, reset: bool, as_json: bool
) -> None:
    """Show or set how long finished jobs are kept.

    Without options it shows. `--days 30 --kind ingest --status failed` keeps failed jobs of one kind for a month.
    """
    if days is not None or reset:
        if days is not None and reset:
            raise click.UsageError("--days and --reset contradict each other: give one")
        seconds = None if days is None else days * DAY_SECONDS
        await queue.set_retention(seconds, kind=kind, status=status)
    elif kind is not None or status is not None:
        raise click.UsageError("say how long: --days N, or --reset")
    rows = await queue.retention()
    if as_json:
        print_json({"items": rows})
        return
    shown = table("KIND", "STATUS", "DAYS", "SAID BY", right=("DAYS",))
    for row in rows:
        name = "(all others)" if row.kind is None else text(row.kind)
        shown.add_row(name, row.status or "(all)", f"{row.seconds / DAY_SECONDS:g}", row.said_by)
    print_table(shown)


@click.command()
@click.option("--jobs", type=click.IntRange(min=0), help="A tenant may have so many unfinished jobs.")
@click.option("--tenant", help="Of this tenant; without it: the default of all tenants.")
@click.option("--reset", is_flag=True, help="Take the limit away.")
@json_option
@with_queue
async def limits(queue: "Queue", jobs: int | None, tenant: str | None, reset: bool, as_json: bool) -> None:
    """Show or set how many unfinished jobs a tenant may have.

    Without options it shows. Over its limit, new jobs of the tenant are refused; children, retries and schedules go on.
    """
    if jobs is not None or reset:
        if jobs is not None and reset:
            raise click.UsageError("--jobs and --reset contradict each other: give one")
        await queue.set_tenant_limit(jobs, tenant=tenant)
    elif tenant is not None:
        raise click.UsageError("say how many: --jobs N, or --reset")
    rows = await queue.tenant_limits()
    if as_json:
        print_json({"items": rows})
        return
    shown = table("TENANT", "LIMIT", "JOBS", right=("LIMIT", "JOBS"))
    for row in rows:
        name = "(all others)" if row.tenant is None else text(row.tenant)
        shown.add_row(
            name, "none" if row.max_jobs is None else f"{row.max_jobs:,}", "" if row.jobs is None else f"{row.jobs:,}"
        )
    print_table(shown)
