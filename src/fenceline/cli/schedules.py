"""`fenceline schedules list|set|pause|resume|run|delete`."""

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from fenceline.cli.options import dsn_option

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline
    from fenceline.model.schedule import Schedule


@click.group()
def schedules() -> None:
    """Jobs by the clock: look at schedules, change them, pause them.

    Code does not undo what is said here.
    """


@schedules.command("list")
@dsn_option
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--next", "count", default=3, show_default=True, help="How many of the next runs to show.")
def list_schedules(dsn: str | None, as_json: bool, count: int) -> None:
    """Every schedule with its next runs."""
    found = _run(dsn, lambda app: app.schedules.list())
    if as_json:
        click.echo(json.dumps([_to_json(schedule, count) for schedule in found], indent=2))
        return
    from rich.console import Console  # noqa: PLC0415 - keeps `--help` quick
    from rich.table import Table  # noqa: PLC0415 - as above

    table = Table("name", "kind", "when", "state", "last run", f"next {count} runs")
    for schedule in found:
        when = schedule.cron or f"every {schedule.every} s"
        state = "paused" if schedule.paused else f"error: {schedule.error}" if schedule.error else "on"
        last = _short(schedule.last_at) if schedule.last_at else "never"
        runs = "\n".join(_short(run) for run in _next_runs(schedule, count))
        table.add_row(schedule.name, schedule.kind, f"{when} {schedule.timezone}", state, last, runs)
    Console().print(table)


@schedules.command("set")
@click.argument("name")
@dsn_option
@click.option("--kind", help="Of the jobs; needed for a new schedule.")
@click.option("--args", "args_", help="Of the jobs, as a JSON object.")
@click.option("--options", help="Of the jobs, as a JSON object: lane, priority, key …")
@click.option("--cron", help='Five fields, as in "0 3 * * *".')
@click.option("--every", type=int, help="Seconds, instead of --cron.")
@click.option("--timezone", help="Of --cron and --window; UTC without one.")
@click.option("--misfire", type=click.Choice(["skip", "once", "all"]), help="What becomes of ticks that were missed.")
@click.option("--misfire-limit", type=int, help="How many missed ticks `all` runs at most.")
@click.option("--window", "windows", multiple=True, help='When not to fire: "mon-fri 22:00-04:00"; repeatable.')
@click.option("--no-windows", is_flag=True, help="Fire at all times.")
@click.option("--reset", multiple=True, metavar="SETTING", help="Go back to what the code says; repeatable.")
def set_schedule(name: str, dsn: str | None, windows: tuple[str, ...], **given: Any) -> None:
    """Create a schedule, or change settings of one."""
    reset, no_windows = given.pop("reset"), given.pop("no_windows")
    given["args"] = _read_object("--args", given.pop("args_"))
    given["options"] = _read_object("--options", given["options"])
    settings = {setting: value for setting, value in given.items() if value is not None}
    settings |= dict.fromkeys(reset)
    if windows or no_windows:
        settings["windows"] = [_read_window(text) for text in windows]
    changed = _run(dsn, lambda app: app.schedules.set(name, **settings))
    runs = ", ".join(_short(run) for run in _next_runs(changed, 3)) or "none"
    click.echo(f"{name}: next runs {runs}")


@schedules.command()
@click.argument("name")
@dsn_option
def pause(name: str, dsn: str | None) -> None:
    """Stop a schedule until it is resumed."""
    _run(dsn, lambda app: app.schedules.pause(name))


@schedules.command()
@click.argument("name")
@dsn_option
def resume(name: str, dsn: str | None) -> None:
    """Let a paused schedule go on from now."""
    _run(dsn, lambda app: app.schedules.resume(name))


@schedules.command()
@click.argument("name")
@dsn_option
def run(name: str, dsn: str | None) -> None:
    """Enqueue the job of a schedule now, and print its id."""
    click.echo(_run(dsn, lambda app: app.schedules.run(name)).id)


@schedules.command()
@click.argument("name")
@dsn_option
def delete(name: str, dsn: str | None) -> None:
    """Delete a schedule that is in no code any more."""
    _run(dsn, lambda app: app.schedules.delete(name))


def _run(dsn: str | None, verb: "Callable[[Fenceline], Awaitable[Any]]") -> Any:
    from fenceline.client.app import Fenceline  # noqa: PLC0415 - keeps `--help` quick

    async def call() -> Any:
        async with Fenceline(dsn) as app:
            return await verb(app)

    return asyncio.run(call())


def _read_object(option: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{option} is not JSON: {error}") from error


def _read_window(text: str) -> dict[str, str]:
    """From "mon-fri 22:00-04:00", or without days; what is wrong with it is said where it is used."""
    days, _, times = text.strip().rpartition(" ")
    start, _, end = times.partition("-")
    return {"from": start, "to": end} | ({"days": days} if days else {})


def _next_runs(schedule: "Schedule", count: int) -> list[datetime]:
    try:
        return schedule.next_runs(count)
    except ValueError:  # the row holds something that this program cannot read; `error` says what
        return []


def _to_json(schedule: "Schedule", count: int) -> dict[str, Any]:
    values = dataclasses.asdict(schedule) | {"next_runs": _next_runs(schedule, count)}
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in values.items()} | {
        "next_runs": [run.isoformat() for run in values["next_runs"]]
    }


def _short(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")
