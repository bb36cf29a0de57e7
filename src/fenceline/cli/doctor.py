"""`fenceline doctor`."""

import asyncio
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import console, echo, print_json, text, to_json

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue
    from fenceline.doctor.finding import Finding, Limits


@click.command()
@json_option
@click.option(
    "--patience",
    "patience_seconds",
    default=300.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds a transaction or job may take or wait before it is reported.",
)
@click.option(
    "--max-dead-rows",
    "dead_rows",
    default=100_000,
    show_default=True,
    type=click.IntRange(0),
    help="Dead rows a table may have before it is reported.",
)
@click.option(
    "--max-notifications",
    "notification_queue",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of the notification queue that may be used before it is reported.",
)
@click.option("--watch", is_flag=True, help="Keep checking until Ctrl-C; print new and resolved findings.")
@click.option(
    "--interval",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0.1, 3600),
    help="Seconds between checks of --watch.",
)
@with_queue
async def doctor(queue: "Queue", as_json: bool, watch: bool, interval: float, **given: float) -> None:
    """Find problems, and say what to do about them.

    Looks at the server and its settings, the schema, roles and grants, vacuum, notifications, lanes, workers, jobs,
    locks and partitions. Exits 1 when there are problems; notices alone leave it 0.
    """
    from fenceline.doctor.finding import Limits

    limits = Limits(**given)  # type: ignore[arg-type]  # click has made dead_rows an int
    if watch:
        await _watch(queue, limits, interval=interval, as_json=as_json)
    findings = await queue.examine(limits)
    problems = sum(finding.level == "problem" for finding in findings)
    if as_json:
        print_json({"healthy": not problems, "findings": findings})
    else:
        _print(findings)
        if not problems:
            click.echo("no problems found", err=True)
    click.get_current_context().exit(1 if problems else 0)


async def _watch(queue: "Queue", limits: "Limits", *, interval: float, as_json: bool) -> None:
    """Until Ctrl-C, print each finding once, and a line when it is resolved; as JSON, one object per change."""
    known: dict[tuple[str, str], Finding] = {}
    while True:
        now = {(finding.check, finding.subject): finding for finding in await queue.examine(limits)}
        new = [finding for name, finding in now.items() if name not in known]
        over = [finding for name, finding in known.items() if name not in now]
        if as_json:
            for change, findings in (("new", new), ("over", over)):
                for finding in findings:
                    click.echo(to_json({"change": change, "finding": finding}, indent=None))
        else:
            _print(new)
            for finding in over:
                echo(f"✓ over  {finding.check}  {finding.subject}")
        known = now
        await asyncio.sleep(interval)


def _print(findings: "list[Finding]") -> None:
    out = console()
    for finding in sorted(findings, key=lambda finding: finding.level == "notice"):
        mark = "[red]✗ problem[/]" if finding.level == "problem" else "[yellow]! notice[/]"
        out.print(f"{mark}  [bold]{finding.check}[/]  {text(finding.subject)}", soft_wrap=True)
        out.print(f"    {text(finding.what)}", soft_wrap=True)
        if finding.hurts is not None:
            out.print(f"    [dim]hurts:[/] {text(finding.hurts)}", soft_wrap=True)
        out.print(f"    [dim]do:[/] {text(finding.do)}", soft_wrap=True)
