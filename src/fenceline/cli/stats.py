"""`fenceline stats backlog|active|errors|throughput|slow`, with small bars."""

from typing import TYPE_CHECKING, Any, TypeVar

import click

from fenceline.cli.job_text import draw_bar, progress_text
from fenceline.cli.options import json_option, with_queue
from fenceline.cli.output import duration, print_json, print_table, status_text, table, text
from fenceline.cli.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fenceline.model.stats import Backlog, Stats

T = TypeVar("T")

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
    """Show the jobs that wait, by kind and lane, with the age of the oldest."""
    found = _items(await queue.stats.backlog(), as_json=as_json)
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
    """Show the jobs that workers hold, the longest first, with phase and progress."""
    found = _items(await queue.stats.active(), as_json=as_json)
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
    """Show how many of the jobs that ended failed or had errors, by kind."""
    found = _items(await queue.stats.errors(seconds=seconds), as_json=as_json)
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
    """Show how many jobs ended, by tenant, in about thirty spans of time."""
    spans = await queue.stats.throughput(seconds=seconds, bucket_seconds=max(1.0, seconds / 30))
    found = _items(spans, as_json=as_json)
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
    """Show the jobs that take or took the longest."""
    found = _items(await queue.stats.slow(seconds=seconds), as_json=as_json)
    most = max((row.seconds for row in found), default=0.0)
    rows = table("ID", "KIND", "STATUS", "", "TOOK", "WORKER")
    for row in found:
        rows.add_row(
            row.id, text(row.kind), status_text(row.status), _bar(row.seconds, most), duration(row.seconds),
            text(row.worker),
        )  # fmt: skip
    _print(rows, found)


_COUNTS = ("QUEUED", "SCHEDULED", "WAITING", "APPROVAL", "ERRORS", "ENDED", "FAILED", "WITH ERRORS", "CANCELLED")


def _items(found: "Stats[T]", *, as_json: bool) -> list[T]:
    """The items; with `as_json`, print them and end the command."""
    if as_json:
        print_json({"items": found.items, "is_complete": found.is_complete})
        click.get_current_context().exit()
    if not found.is_complete:
        click.echo("There was more than is looked at in one go: the figures are a sample.", err=True)
    return found.items


def _print(rows: Any, found: "Sequence[object]") -> None:
    if found:
        print_table(rows)
    else:
        click.echo("Nothing.", err=True)


def _waiting(row: "Backlog") -> int:
    return row.queued + row.scheduled + row.waiting + row.awaiting_approval


def _bar(value: float, most: float) -> str:
    return f"[blue]{draw_bar(value / most if most else 0.0, BAR)}[/]"
