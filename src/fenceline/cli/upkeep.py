"""Maintenance by hand (`prune`, `sweep`, `rekey`), and its settings (`retention`, `limits`, `approval`)."""

from typing import TYPE_CHECKING, get_args

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import console, print_json, print_table, table, text
from fenceline.model.counted import counted
from fenceline.model.status import FinalStatus

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue

DAY_SECONDS = 86400


@click.command()
@click.option("--limit", default=10_000, show_default=True, type=click.IntRange(1), help="Rows deleted per step.")
@json_option
@with_queue
async def prune(queue: "Queue", limit: int, as_json: bool) -> None:
    """Delete finished jobs past their retention.

    Workers do this once a minute. A day without jobs to keep is dropped whole; elsewhere rows are deleted.
    """
    total = 0
    with console(stderr=True).status("pruning …") as status:
        while forgotten := await queue.system.prune(limit):
            total += forgotten
            status.update(f"pruning … {counted(total, 'job')} forgotten")
    if as_json:
        print_json({"pruned": total})
    else:
        click.echo(f"{counted(total, 'job')} forgotten")


@click.command()
@json_option
@with_queue
async def sweep(queue: "Queue", as_json: bool) -> None:
    """Return the jobs of dead workers to the queue.

    Also jobs whose cancel grace period is over, and jobs that are stale. Workers do this twice a second.
    """
    swept = await queue.system.sweep()
    if as_json:
        print_json({"swept": swept})
    else:
        click.echo(f"{counted(swept, 'attempt')} taken back")


@click.command()
@click.option("--days", type=click.FloatRange(min=0), help="Days to keep finished jobs; 0.5 is twelve hours.")
@click.option("--kind", help="For this kind; default: all kinds.")
@click.option("--status", type=click.Choice(get_args(FinalStatus)), help="Only jobs that ended with this status.")
@click.option("--reset", is_flag=True, help="Remove the setting; the kind's own or the default applies.")
@json_option
@with_queue
async def retention(
    queue: "Queue", days: float | None, kind: str | None, status: str | None, reset: bool, as_json: bool
) -> None:
    """Show or set how long finished jobs are kept.

    Without options it shows the settings. `--days 30 --kind ingest --status failed` keeps failed jobs of one kind for
    a month.
    """
    if days is not None or reset:
        if days is not None and reset:
            raise click.UsageError("--days and --reset contradict each other: give one")
        seconds = None if days is None else days * DAY_SECONDS
        await queue.system.set_retention(seconds, kind=kind, status=status)
    elif kind is not None or status is not None:
        raise click.UsageError("give a time to keep jobs: --days N, or --reset")
    rows = await queue.system.retention()
    if as_json:
        print_json({"items": rows})
        return
    shown = table("KIND", "STATUS", "DAYS", "SAID BY", right=("DAYS",))
    for row in rows:
        name = "(all others)" if row.kind is None else text(row.kind)
        shown.add_row(name, row.status or "(all)", f"{row.seconds / DAY_SECONDS:g}", row.said_by)
    print_table(shown)


@click.command()
@click.option("--jobs", type=click.IntRange(min=0), help="Most unfinished jobs a tenant may have.")
@click.option("--tenant", help="For this tenant; default: all tenants.")
@click.option("--reset", is_flag=True, help="Remove the limit.")
@json_option
@with_queue
async def limits(queue: "Queue", jobs: int | None, tenant: str | None, reset: bool, as_json: bool) -> None:
    """Show or set how many unfinished jobs a tenant may have.

    Without options it shows the limits. Over its limit, new jobs of the tenant are refused; children, retries and
    schedules go on.
    """
    if jobs is not None or reset:
        if jobs is not None and reset:
            raise click.UsageError("--jobs and --reset contradict each other: give one")
        await queue.system.set_tenant_limit(jobs, tenant=tenant)
    elif tenant is not None:
        raise click.UsageError("give a number of jobs: --jobs N, or --reset")
    rows = await queue.system.tenant_limits()
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


@click.command()
@click.option("--by-other/--by-anybody", default=None, help="Whether someone else must approve a job, or anybody may.")
@json_option
@with_queue
async def approval(queue: "Queue", by_other: bool | None, as_json: bool) -> None:
    """Show or set who may approve jobs that need it.

    Without options it shows the setting. By default it must be someone other than who enqueued the job. If you work
    alone, use --by-anybody.
    """
    if by_other is not None:
        await queue.system.set_approval(by_other=by_other)
    now = await queue.system.approval_by_other()
    if as_json:
        print_json({"by_other": now})
    else:
        click.echo("by someone other than who enqueued the job" if now else "by anybody who may approve")


def print_new_key(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    try:
        from cryptography.fernet import Fernet
    except ImportError as error:
        raise click.ClickException("keys need cryptography: pip install 'fenceline[encryption]'") from error
    click.echo(Fernet.generate_key().decode())
    ctx.exit()


@click.command()
@click.option(
    "--new-key",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_new_key,
    help="Print a new key, and stop.",
)
@with_queue
async def rekey(queue: "Queue") -> None:
    """Re-encrypt everything with the newest key.

    A worker does it as a job, whose id is printed: `fenceline jobs show ID` shows its progress. Before that, put the
    new key into $FENCELINE_KEYS of every worker, server and producer, in front of the old one, and restart them. When
    the job has succeeded, the old key can go.
    """
    click.echo(await queue.system.rekey())
