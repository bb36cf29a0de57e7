"""`fenceline doctor`."""

import asyncio
from typing import TYPE_CHECKING

import click

from fenceline.cli.options import dsn_option, json_option
from fenceline.cli.output import console, print_json, text

if TYPE_CHECKING:
    from fenceline.doctor import Finding, Limits


@click.command()
@dsn_option
@json_option
@click.option(
    "--patience", default=300.0, show_default=True, help="Seconds that transactions and jobs may take or wait."
)
@click.option("--max-dead-rows", default=100_000, show_default=True, help="Dead rows of a table.")
@click.option("--max-notifications", default=0.1, show_default=True, help="Used share of the notification queue.")
@click.pass_context
def doctor(
    ctx: click.Context, dsn: str | None, as_json: bool, patience: float, max_dead_rows: int, max_notifications: float
) -> None:
    """Find what is wrong, and say what to do.

    Looks at the server and its settings, the schema, roles and grants, vacuum, notifications, lanes, workers, jobs,
    locks and partitions. Exits 1 when there are problems; notices alone leave it 0.
    """
    from fenceline.doctor import Limits  # noqa: PLC0415 - keeps `--help` quick

    limits = Limits(patience_seconds=patience, dead_rows=max_dead_rows, notification_queue=max_notifications)
    findings = asyncio.run(_examine(dsn, limits))
    problems = sum(finding.level == "problem" for finding in findings)
    if as_json:
        print_json({"healthy": not problems, "findings": findings})
    else:
        _print(findings)
        if not problems:
            click.echo("no problems found", err=True)
    ctx.exit(1 if problems else 0)


async def _examine(dsn: str | None, limits: "Limits") -> "list[Finding]":
    import asyncpg  # noqa: PLC0415 - keeps `--help` quick

    from fenceline.database.migrate import migrate  # noqa: PLC0415 - as above
    from fenceline.database.source import Source  # noqa: PLC0415 - as above
    from fenceline.doctor import examine  # noqa: PLC0415 - as above

    source = Source(dsn)
    try:
        # Not by way of the client: it refuses a database whose schema does not fit, and that is for us to find.
        connection = await asyncpg.connect(await source.dsn(), timeout=10, statement_cache_size=0)
        try:
            if source.is_embedded:
                await migrate(connection)
            return await examine(connection, limits)
        finally:
            await connection.close()
    finally:
        source.close()


def _print(findings: "list[Finding]") -> None:
    out = console()
    for finding in sorted(findings, key=lambda finding: finding.level == "notice"):
        mark = "[red]✗ problem[/]" if finding.level == "problem" else "[yellow]! notice[/]"
        out.print(f"{mark}  [bold]{finding.check}[/]  {text(finding.subject)}", soft_wrap=True)
        out.print(f"    {text(finding.what)}", soft_wrap=True)
        out.print(f"    [dim]do:[/] {text(finding.do)}", soft_wrap=True)
