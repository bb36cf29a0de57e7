"""`fenceline schedules list|set|pause|resume|run|delete`."""

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from fenceline.cli.command_group import CommandGroup
from fenceline.cli.option_values import read_json
from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import print_json, print_table, table, text

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue
    from fenceline.model.schedule import Schedule

#: Bookkeeping of the schedulers, which HTTP does not show either.
INNER = ("revision", "settled_at", "now")


@click.group(cls=CommandGroup)
def schedules() -> None:
    """List, change, pause and run schedules.

    What is set here takes precedence over the code, also after a deployment.
    """


@schedules.command("list")
@json_option
@click.option("--next", "count", default=3, show_default=True, help="How many upcoming runs to show.")
@with_queue
async def list_schedules(queue: "Queue", as_json: bool, count: int) -> None:
    """List the schedules, with their next runs."""
    found = await queue.schedules.list()
    if as_json:
        print_json({"items": [_to_json(schedule, count) for schedule in found]})
        return
    if not found:
        click.echo("No schedule is set: `fenceline schedules set NAME --kind KIND --cron …` makes one.", err=True)
        return
    rows = table("NAME", "KIND", "WHEN", "STATE", "LAST RUN", f"NEXT {count} RUNS", may_wrap=("STATE",))
    for schedule in found:
        when = schedule.cron or f"every {schedule.every} s"
        state = "paused" if schedule.paused else f"error: {schedule.error}" if schedule.error else "on"
        last = _short(schedule.last_at) if schedule.last_at else "never"
        runs = "\n".join(_short(run) for run in _next_runs(schedule, count))
        rows.add_row(*map(text, (schedule.name, schedule.kind, f"{when} {schedule.timezone}", state, last, runs)))
    print_table(rows, first_to_go=("LAST RUN", "KIND"))


@schedules.command("set")
@click.argument("name")
@click.option("--kind", help="Kind of the jobs; required for a new schedule.")
@click.option("--args", "args_", callback=read_json, help="Args of the jobs, as a JSON object.")
@click.option("--options", callback=read_json, help="Options of the jobs, as a JSON object: lane, priority, key …")
@click.option("--cron", help='Five fields, as in "0 3 * * *".')
@click.option("--every", type=int, help="Seconds, instead of --cron.")
@click.option("--timezone", help="Time zone of --cron and --window; default: UTC.")
@click.option("--misfire", type=click.Choice(["skip", "once", "all"]), help="What to do about missed ticks.")
@click.option("--misfire-limit", type=int, help="Most missed ticks that `all` makes up for.")
@click.option("--window", "windows", multiple=True, help='When not to fire: "mon-fri 22:00-04:00"; repeatable.')
@click.option("--no-windows", is_flag=True, help="Remove all windows.")
@click.option(
    "--reset", multiple=True, metavar="SETTING", help="Remove this override, so that the code applies; repeatable."
)
@with_queue
async def set_schedule(queue: "Queue", name: str, windows: tuple[str, ...], **given: Any) -> None:
    """Create a schedule, or change settings of one."""
    reset, no_windows = given.pop("reset"), given.pop("no_windows")
    given["args"] = given.pop("args_")
    settings = {setting: value for setting, value in given.items() if value is not None}
    settings |= dict.fromkeys(reset)
    if windows or no_windows:
        settings["windows"] = [_read_window(window) for window in windows]
    changed = await queue.schedules.set(name, **settings)
    runs = ", ".join(_short(run) for run in _next_runs(changed, 3)) or "none"
    click.echo(f"{name}: next runs {runs}")


@schedules.command()
@click.argument("name")
@with_queue
async def pause(queue: "Queue", name: str) -> None:
    """Stop a schedule until it is resumed."""
    await queue.schedules.pause(name)
    click.echo(f"{name} is paused")


@schedules.command()
@click.argument("name")
@with_queue
async def resume(queue: "Queue", name: str) -> None:
    """Let a paused schedule go on from now."""
    await queue.schedules.resume(name)
    click.echo(f"{name} goes on")


@schedules.command()
@click.argument("name")
@with_queue
async def run(queue: "Queue", name: str) -> None:
    """Enqueue the job of a schedule now, and print its id."""
    click.echo((await queue.schedules.run(name)).id)


@schedules.command()
@click.argument("name")
@with_queue
async def delete(queue: "Queue", name: str) -> None:
    """Delete a schedule that is no longer in the code."""
    await queue.schedules.delete(name)
    click.echo(f"{name} is deleted")


def _read_window(text: str) -> dict[str, str]:
    """From "mon-fri 22:00-04:00", or without days. Checked later, where it is set."""
    days, _, times = text.strip().rpartition(" ")
    start, _, end = times.partition("-")
    return {"from": start, "to": end} | ({"days": days} if days else {})


def _next_runs(schedule: "Schedule", count: int) -> list[datetime]:
    try:
        return schedule.next_runs(count)
    except ValueError:  # the row has something that this version cannot read; `error` says what
        return []


def _to_json(schedule: "Schedule", count: int) -> dict[str, Any]:
    values = {key: value for key, value in dataclasses.asdict(schedule).items() if key not in INNER}
    return {**values, "next_runs": _next_runs(schedule, count)}


def _short(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")
