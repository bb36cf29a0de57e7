"""`fenceline lanes list|set|drain|resume`."""

from typing import TYPE_CHECKING, Any

import click

from fenceline.cli.command_group import CommandGroup
from fenceline.cli.option_values import read_names
from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import ago, duration, print_json, print_table, table, text

if TYPE_CHECKING:
    from fenceline.cli.queue import Queue
    from fenceline.model.job import Lane

NONE = "none"


@click.group(cls=CommandGroup)
def lanes() -> None:
    """See and change lanes: budgets of slots."""


@lanes.command("list")
@json_option
@with_queue
async def list_lanes(queue: "Queue", as_json: bool) -> None:
    """List the lanes, with slots in use, depth and age of the oldest queued job."""
    found = await queue.lanes.list()
    if as_json:
        print_json({"items": found})
    else:
        _print(found)


@lanes.command("set")
@click.argument("name")
@click.option("--create", is_flag=True, hidden=True, help="No longer needed; 0.1 required it.")
@click.option("--slots", metavar="N|none", help="Jobs at a time in the whole fleet; none: unlimited.")
@click.option("--kinds", metavar="A,B|none", help="Kinds that run in this lane; waiting jobs move here too.")
@click.option("--rate-per-second", metavar="X|none", help="Claims per second in the whole fleet.")
@click.option("--burst", metavar="N|none", help="Claims allowed at once after a quiet time, with a rate.")
@click.option("--poll-interval-ms", metavar="N", help="How often idle workers poll.")
@click.option("--stale-timeout-seconds", metavar="N|none", help="Seconds without activity after which a job is stale.")
@click.option("--on-stale", type=click.Choice(["retry", "fail"]), help="What happens to a stale job.")
@click.option(
    "--offline-timeout-seconds",
    metavar="N|none",
    help="Seconds of silence after which its runners count as offline; none: 60.",
)
@click.option("--fair/--not-fair", default=None, help="Tenants take turns.")
@click.option("--ageing-seconds", metavar="N|none", help="Seconds of waiting that raise a job's priority by one.")
@click.option("--needs-approval/--no-approval", default=None, help="Its jobs, and those of its kinds, need approval.")
@click.option("--delivery", metavar="postgres|arq|none", help="How its jobs reach workers; none: as the app declares.")
@click.option("--default-priority", metavar="N", help="Priority of jobs that give none.")
@click.option(
    "--enabled/--disabled", default=None, help="Start jobs, or start none, as `lanes resume` and `lanes drain`."
)
@json_option
@with_queue
async def set_lane(queue: "Queue", name: str, create: bool, as_json: bool, **options: Any) -> None:
    """Change settings of the lane NAME, or make it; they take effect with the next claim, on every worker."""
    changes = {option: _value(option, value) for option, value in options.items() if value is not None}
    if not changes and not create:
        raise click.UsageError("nothing to change: give at least one setting, for instance --slots 4")
    _show(await queue.lanes.set(name, **changes), as_json=as_json)


@lanes.command()
@click.argument("name")
@json_option
@with_queue
async def drain(queue: "Queue", name: str, as_json: bool) -> None:
    """Stop claims of the lane NAME; enqueues are still accepted, running jobs go on."""
    _show(await queue.lanes.drain(name), as_json=as_json)


@lanes.command()
@click.argument("name")
@json_option
@with_queue
async def resume(queue: "Queue", name: str, as_json: bool) -> None:
    """Let workers claim from the lane NAME again."""
    _show(await queue.lanes.resume(name), as_json=as_json)


def _value(option: str, given: Any) -> Any:
    if not isinstance(given, str) or option == "on_stale":
        return given
    if option == "kinds":
        return [] if given == NONE else read_names(given)
    if given == NONE:
        return None
    if option == "delivery":
        return given
    try:
        return float(given) if option == "rate_per_second" else int(given)
    except ValueError:
        flag = "--" + option.replace("_", "-")
        raise click.ClickException(
            f"{flag} {given!r} is not a number (or `{NONE}`, where a setting can be cleared)"
        ) from None


def _show(lane: "Lane", *, as_json: bool) -> None:
    if as_json:
        print_json(lane)
    else:
        _print([lane])


def _print(found: "list[Lane]") -> None:
    delivered = ("DELIVERY",) if any(lane.delivery for lane in found) else ()
    rows = table(
        "LANE", "STATE", "IN USE", "SLOTS", "DEPTH", "OLDEST", "RATE", "POLL", "STALE", *delivered, "UPDATED", "KINDS",
        right=("IN USE", "SLOTS", "DEPTH"), may_wrap=("KINDS",),
    )  # fmt: skip
    for lane in found:
        rows.add_row(
            text(lane.name),
            "[green]open[/]" if lane.enabled else "[yellow]drained[/]",
            str(lane.in_use),
            "∞" if lane.slots is None else str(lane.slots),
            str(lane.depth),
            duration(lane.oldest_age_seconds),
            "" if lane.rate_per_second is None else f"{lane.rate_per_second:g}/s",
            duration(lane.poll_interval_ms / 1000),
            "" if lane.stale_timeout_seconds is None else f"{duration(lane.stale_timeout_seconds)}, {lane.on_stale}",
            *[text(lane.delivery or "") for _ in delivered],
            "" if lane.updated_at is None else ago(lane.updated_at),
            text(", ".join(lane.kinds)),
        )
    print_table(rows, first_to_go=("UPDATED", "STALE", "POLL", "RATE", "OLDEST", *delivered))
