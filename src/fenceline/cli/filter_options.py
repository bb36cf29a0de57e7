"""Which jobs: the filters of lists and bulk verbs, with the names that they have in HTTP."""

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from fenceline.model.job import JobFilter
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
        raise click.BadParameter(
            f"{value!r} is not a time: write it like 2030-01-31T18:00, or 2h for two hours ago"
        ) from None


def filter_options(function: F) -> F:
    """Add the filters; the function gets them as one `which: JobFilter`."""

    @functools.wraps(function)
    def with_filter(*args: Any, **kwargs: Any) -> Any:
        labels = dict(_label(text) for text in kwargs.pop("label"))
        which = JobFilter(
            labels=labels or None, **{name: kwargs.pop(option) or None for option, name in _NAMES.items()}
        )
        return function(*args, which=which, **kwargs)

    for option in reversed(_OPTIONS):
        with_filter = option(with_filter)
    return with_filter  # type: ignore[return-value]  # the same function to click


#: Options, and what they are in a filter.
_NAMES = {
    "status": "statuses",
    "kind": "kinds",
    "lane": "lanes",
    "tenant": "tenants",
    "created_after": "created_after",
    "created_before": "created_before",
    "created_by": "created_by",
    "parent": "parent",
    "group": "group",
    "key": "key",
    "worker": "worker",
    "phase": "phase",
    "error": "error",
}
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
        help="Only jobs created since 2030-01-31T18:00, or 2h for the last two hours.",
    ),
    click.option("--created-before", callback=read_moment, metavar="TIME", help="Only jobs created before this time."),
    click.option("--created-by", metavar="NAME", help="Only jobs that this actor enqueued."),
    click.option("--parent", metavar="ID", help="Only children of this job."),
    click.option("--group", metavar="NAME", help="Only jobs of this group."),
    click.option("--key", metavar="KEY", help="Only jobs with this key."),
    click.option("--worker", metavar="NAME", help="Only jobs that this worker holds or finished."),
    click.option("--phase", metavar="NAME", help="Only jobs whose last phase is this one."),
    click.option("--error", metavar="TEXT", help="Only jobs whose error contains this text."),
)


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator or not name:
        raise click.ClickException(f"--label {text!r} is not a label: write it as NAME:VALUE, for example project:x")
    return name, value
