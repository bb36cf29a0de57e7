"""What commands print: tables for people, JSON for programs."""

import dataclasses
import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fenceline.model.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
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
    # Other ways in which attempts end.
    "snoozed": "cyan",
    "released": "cyan",
    "lost": "red",
    "crashed": "red",
}

_UNBOUNDED = 10_000
_REMARK = 20  # a remark is of use with at least this many characters
_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def print_json(value: Any) -> None:
    """Print records (or lists and dicts of them) as JSON, with the field names of the HTTP interface."""
    click.echo(to_json(value))


def to_json(value: Any, *, indent: int | None = 2) -> str:
    # JSON can escape what another encoding has no character for, so nothing is lost.
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return visible_json(json.dumps(value, default=_plain, indent=indent, ensure_ascii=plain))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def console(*, stderr: bool = False) -> "Console":
    """For people. What is piped to a program is as wide as it needs to be, so that nothing is cut off."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else _UNBOUNDED
    return Console(stderr=stderr, highlight=False, emoji=False, width=width)


def table(*columns: str, right: tuple[str, ...] = (), may_wrap: tuple[str, ...] = ()) -> "Table":
    """An empty table without frames, for `print_table`. Cells are markup: escape what users wrote, with `text`."""
    from rich.table import Table

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


def print_table(rows: "Table", *, first_to_go: tuple[str, ...] = (), remark: str | None = None) -> None:
    """Print a table. On a terminal that is too narrow, columns are dropped one by one, so that no id is cut off.

    The column `remark` gets the width that is left.
    """
    out = console()
    if out.is_terminal:
        anything = out.options.update(max_width=_UNBOUNDED)
        for column in rows.columns:
            column.max_width = _REMARK if column.header == remark else None
        for header in first_to_go:
            if out.measure(rows, options=anything).maximum <= out.width:
                break
            rows.columns[:] = [column for column in rows.columns if column.header != header]
            for index, column in enumerate(rows.columns):  # rich pads all columns but the last
                column._index = index  # noqa: SLF001 - rich cannot remove a column
        left = max(out.width - out.measure(rows, options=anything).maximum, 0)
        for column in rows.columns:
            column.max_width = _REMARK + left if column.header == remark else None
    print_parts(rows)


def print_parts(*parts: "RenderableType") -> None:
    """Print to standard output, without the blanks that rich puts at the ends of lines, unless to a terminal."""
    out = console()
    if out.is_terminal:
        out.print(*parts, sep="\n")
        return
    with out.capture() as captured:
        out.print(*parts, sep="\n")
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def text(value: Any) -> str:
    """A value as markup: empty for None, with brackets escaped, and with nothing in it that steers the terminal."""
    if value is None:
        return ""
    from rich.markup import escape

    return escape(visible(str(value)))


def echo(line: str, *, err: bool = False) -> None:
    """Print a line that contains text from users."""
    click.echo(visible(line), err=err)


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
