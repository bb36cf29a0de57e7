"""What commands print: tables for people, JSON for programs."""

import dataclasses
import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STATUS_STYLES = {
    "awaiting_approval": "yellow",
    "waiting": "cyan",
    "scheduled": "cyan",
    "queued": "blue",
    "claimed": "bright_blue",
    "running": "bright_blue",
    "succeeded": "green",
    "succeeded_with_errors": "yellow",
    "failed": "red",
    "cancelled": "magenta",
    # How attempts end, beside the above.
    "snoozed": "cyan",
    "released": "cyan",
    "lost": "red",
    "crashed": "red",
}

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def print_json(value: Any) -> None:
    """Print records (or lists and dicts of them) as JSON, with the field names of the HTTP interface."""
    click.echo(to_json(value))


def to_json(value: Any, *, indent: int | None = 2) -> str:
    return json.dumps(value, default=_plain, indent=indent, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def console(*, stderr: bool = False) -> "Console":
    """Where people read. What is piped on is as wide as it needs to be, so that nothing is cut off for a program."""
    from rich.console import Console  # noqa: PLC0415 - keeps `--help` quick

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, emoji=False, width=None if stream.isatty() else 10_000)


def table(*columns: str, right: tuple[str, ...] = (), may_wrap: tuple[str, ...] = ()) -> "Table":
    """An empty table without frames; print it with `console().print`. Cells are markup: escape what users wrote."""
    from rich.table import Table  # noqa: PLC0415 - keeps `--help` quick

    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        wraps = column in may_wrap
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )
    return made


def text(value: Any) -> str:
    """A value as a cell: nothing for None, and square brackets mean themselves."""
    if value is None:
        return ""
    from rich.markup import escape  # noqa: PLC0415 - keeps `--help` quick

    return escape(str(value))


def status_text(status: str, waiting_for: str | None = None) -> str:
    """A status in its colour, with what the job waits for."""
    style = STATUS_STYLES.get(status, "default")
    return f"[{style}]{status}[/]" + (f" [dim]({waiting_for})[/]" if waiting_for else "")


def duration(seconds: float | None) -> str:
    """12 ms, 3.4 s, 5 m 20 s, 2 h 05 m, 3 d 04 h."""
    if seconds is None:
        return ""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if round(seconds, 3) < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if round(seconds, 1) < _MINUTE:
        return f"{sign}{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{sign}{whole // _MINUTE} m {whole % _MINUTE:02} s"
    if whole < _DAY:
        return f"{sign}{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} m"
    return f"{sign}{whole // _DAY} d {whole % _DAY // _HOUR:02} h"


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, or in how long."""
    if moment is None:
        return ""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return f"in {duration(-seconds)}" if seconds < 0 else f"{duration(seconds)} ago"
