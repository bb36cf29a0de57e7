"""`fenceline stats backlog|active|errors|throughput|slow`, with small bars."""

from typing import TYPE_CHECKING, Any

import click

from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import duration, print_json, print_table, status_text, table, text
from fenceline.cli.progress_text import draw_bar, progress_text
from fenceline.cli.queue import Queue
from fenceline.cli.queue_values import StatsName

if TYPE_CHECKING:
    from fenceline.model.stats import Stats

BAR = 16

seconds_option = click.option(
    "--seconds",
    default=3600.0,
    show_default=True,
    type=click.FloatRange(1, 604_800),
    help="How far back to look, in seconds.",
)


@click.group()
def stats() -> None:
    """Backlog, active jobs, errors, throughput and slow jobs, with bars."""


@stats.command()
@json_option
@with_queue
async def backlog(queue: Queue, as_json: bool) -> None:
    """What waits, by kind and lane, and the age of the oldest."""
    found = await _ask(queue, "backlog", as_json=as_json)
    most = max((_waiting(row) for row in found), default=0)
    rows = table("KIND", "LANE", "", "QUEUED", "SCHEDULED", "WAITING", "APPROVAL", "OLDEST", right=_COUNTS)
    for row in found:
        rows.add_row(
            text(row.kind), text(row.lane), _bar(_waiting(row), most), str(row.queued), str(row.scheduled),
            str(row.waiting), str(row.awaiting_approval), duration(row.oldest_age_seconds),
        )  # fmt: skip
    _print(rows, found)


@stats.command()
@json_option
@with_queue
async def active(queue: Queue, as_json: bool) -> None:
    """What workers hold, the longest first, with phase and progress."""
    found = await _ask(queue, "active", as_json=as_json)
    rows = table("ID", "KIND", "STATUS", "LANE", "FOR", "WORKER", "PROGRESS")
    for row in found:
        progress = row.progress if isinstance(row.progress, dict) else None
        rows.add_row(
            row.id, text(row.kind), status_text(row.status), text(row.lane), duration(row.seconds), text(row.worker),
            text(progress_text(row.phase, progress, bar=BAR)),
        )  # fmt: skip
    _print(rows, found)


@stats.command()
@seconds_option
@json_option
@with_queue
async def errors(queue: Queue, seconds: float, as_json: bool) -> None:
    """How many jobs of each kind failed or had errors, of those that ended."""
    found = await _ask(queue, "errors", seconds=seconds, as_json=as_json)
    rows = table("KIND", "", "ERRORS", "ENDED", "FAILED", "WITH ERRORS", "CANCELLED", right=_COUNTS)
    for row in found:
        rows.add_row(
            text(row.kind), f"[red]{draw_bar(row.error_rate, BAR)}[/]", f"{row.error_rate:.1%}", str(row.ended),
            str(row.failed), str(row.succeeded_with_errors), str(row.cancelled),
        )  # fmt: skip
    _print(rows, found)


@stats.command()
@seconds_option
@json_option
@with_queue
async def throughput(queue: Queue, seconds: float, as_json: bool) -> None:
    """How many jobs of each tenant ended, in about thirty spans of time."""
    found = await _ask(queue, "throughput", seconds=seconds, as_json=as_json)
    most = max((row.ended for row in found), default=0)
    rows = table("FROM", "TENANT", "", "ENDED", "FAILED", right=_COUNTS)
    for row in found:
        rows.add_row(
            f"{row.at.astimezone():%H:%M:%S}", text(row.tenant), _bar(row.ended, most), str(row.ended), str(row.failed)
        )
    _print(rows, found)


@stats.command()
@seconds_option
@json_option
@with_queue
async def slow(queue: Queue, seconds: float, as_json: bool) -> None:
    """The jobs that take longest now, or took."""
    found = await _ask(queue, "slow", seconds=seconds, as_json=as_json)
    most = max((row.seconds for row in found), default=0.0)
    rows = table("ID", "KIND", "STATUS", "", "TOOK", "WORKER")
    for row in found:
        rows.add_row(
            row.id, text(row.kind), status_text(row.status), _bar(row.seconds, most), duration(row.seconds),
            text(row.worker),
        )  # fmt: skip
    _print(rows, found)


_COUNTS = ("QUEUED", "SCHEDULED", "WAITING", "APPROVAL", "ERRORS", "ENDED", "FAILED", "WITH ERRORS", "CANCELLED")


async def _ask(queue: Queue, what: StatsName, *, as_json: bool, seconds: float = 3600.0) -> list[Any]:
    """The items; with `as_json` they are printed here, and that is all."""
    found: Stats[Any] = await queue.stats(what, seconds=seconds)
    if as_json:
        print_json({"items": found.items, "is_complete": found.is_complete})
        click.get_current_context().exit()
    if not found.is_complete:
        click.echo("There was more than is looked at in one go: the figures are a sample.", err=True)
    return found.items


def _print(rows: Any, found: list[Any]) -> None:
    if found:
        print_table(rows)
    else:
        click.echo("Nothing.", err=True)


def _waiting(row: Any) -> int:
    return int(row.queued + row.scheduled + row.waiting + row.awaiting_approval)


def _bar(value: float, most: float) -> str:
    return f"[blue]{draw_bar(value / most if most else 0.0, BAR)}[/]"
