"""Which jobs: the filters of lists and bulk verbs, with the names that they have in HTTP."""

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from fenceline.cli.queue import JobFilter
from fenceline.model.status import Status

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """A time: ISO 8601 (local time without a zone), or so long ago: 90s, 15m, 2h, 7d, 1w."""
    if value is None:
        return None
    span = re.fullmatch(r"(\d+)([smhdw])", value)
    try:
        if span is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[span[2]]: int(span[1])})
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{value!r} is no time: write 2030-01-31T18:00, or 2h for two hours ago") from None


def filter_options(function: F) -> F:
    """Add the filters; the function gets them as one `which: JobFilter`."""

    @functools.wraps(function)
    def with_filter(*args: Any, **kwargs: Any) -> Any:
        labels = dict(_label(text) for text in kwargs.pop("label"))
        which = JobFilter(labels=labels or None, **{name: kwargs.pop(name) for name in _NAMES})
        return function(*args, which=which, **kwargs)

    for option in reversed(_OPTIONS):
        with_filter = option(with_filter)
    return with_filter  # type: ignore[return-value]  # the same function to click


_NAMES = ("status", "kind", "lane", "tenant", "created_after", "created_before")
_OPTIONS = (
    click.option(
        "--status",
        multiple=True,
        type=click.Choice([str(status) for status in Status]),
        metavar="STATUS",
        help="Only jobs of this status; may be repeated, as --kind, --lane and --tenant.",
    ),
    click.option("--kind", multiple=True, help="Only jobs of this kind."),
    click.option("--lane", multiple=True, help="Only jobs of this lane."),
    click.option("--tenant", multiple=True, help="Only jobs of this tenant."),
    click.option("--label", multiple=True, metavar="NAME:VALUE", help="Only jobs with this label; all must match."),
    click.option(
        "--created-after",
        callback=read_moment,
        metavar="TIME",
        help="Only jobs made since then: 2030-01-31T18:00, or 2h ago as 2h.",
    ),
    click.option("--created-before", callback=read_moment, metavar="TIME", help="Only jobs made before then."),
)


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator or not name:
        raise click.ClickException(f"--label {text!r} is no label: write NAME:VALUE, for instance project:x")
    return name, value
