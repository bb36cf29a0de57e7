"""`fenceline doctor`."""

from typing import TYPE_CHECKING

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import console, print_json, text

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue
    from fenceline.doctor.finding import Finding


@click.command()
@json_option
@click.option(
    "--patience",
    default=300.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds that transactions and jobs may take or wait.",
)
@click.option(
    "--max-dead-rows", default=100_000, show_default=True, type=click.IntRange(0), help="Dead rows of a table."
)
@click.option(
    "--max-notifications",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Used share of the notification queue.",
)
@with_queue
async def doctor(queue: "Queue", as_json: bool, patience: float, max_dead_rows: int, max_notifications: float) -> None:
    """Find what is wrong, and say what to do.

    Looks at the server and its settings, the schema, roles and grants, vacuum, notifications, lanes, workers, jobs,
    locks and partitions. Exits 1 when there are problems; notices alone leave it 0.
    """
    from fenceline.doctor.finding import Limits  # noqa: PLC0415 - keeps `--help` quick

    limits = Limits(patience_seconds=patience, dead_rows=max_dead_rows, notification_queue=max_notifications)
    findings = await queue.examine(limits)
    problems = sum(finding.level == "problem" for finding in findings)
    if as_json:
        print_json({"healthy": not problems, "findings": findings})
    else:
        _print(findings)
        if not problems:
            click.echo("no problems found", err=True)
    click.get_current_context().exit(1 if problems else 0)


def _print(findings: "list[Finding]") -> None:
    out = console()
    for finding in sorted(findings, key=lambda finding: finding.level == "notice"):
        mark = "[red]✗ problem[/]" if finding.level == "problem" else "[yellow]! notice[/]"
        out.print(f"{mark}  [bold]{finding.check}[/]  {text(finding.subject)}", soft_wrap=True)
        out.print(f"    {text(finding.what)}", soft_wrap=True)
        out.print(f"    [dim]do:[/] {text(finding.do)}", soft_wrap=True)
