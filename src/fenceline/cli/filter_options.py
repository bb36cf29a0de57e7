"""The filters of lists and bulk verbs, with the names that they have in HTTP."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from fenceline.cli.option_values import read_span
from fenceline.client.job_filters import JobFilters, read_filters
from fenceline.model.status import Status

F = TypeVar("F", bound=Callable[..., Any])


def read_past(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """From ISO 8601 (local time if it has no zone), or a span before now: 90s, 15m, 2h, 7d, 1w."""
    if value is None:
        return None
    try:
        span = read_span(value)
        return datetime.fromisoformat(value).astimezone() if span is None else datetime.now(UTC) - span
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is not a time: write it like 2030-01-31T18:00, or 2h for two hours ago"
        ) from None


def filter_options(function: F) -> F:
    """Add the filters; the function gets them as one `which: JobFilter`."""

    @functools.wraps(function)
    def with_filter(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) or None for name in _NAMES}
        given["labels"] = dict(_label(text) for text in given.pop("label") or ()) or None
        which = read_filters(given)  # type: ignore[arg-type]  # the options have the names of the filters
        return function(*args, which=which, **kwargs)

    for option in reversed(_OPTIONS):
        with_filter = option(with_filter)
    return with_filter  # type: ignore[return-value]  # the same function to click


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
        callback=read_past,
        metavar="TIME",
        help="Only jobs created since 2030-01-31T18:00, or 2h for the last two hours.",
    ),
    click.option("--created-before", callback=read_past, metavar="TIME", help="Only jobs created before this time."),
    click.option("--created-by", metavar="NAME", help="Only jobs that this actor enqueued."),
    click.option("--parent", metavar="ID", help="Only children of this job."),
    click.option("--group", metavar="NAME", help="Only jobs of this group."),
    click.option("--key", metavar="KEY", help="Only jobs with this key."),
    click.option("--worker", metavar="NAME", help="Only jobs that this worker holds or finished."),
    click.option("--phase", metavar="NAME", help="Only jobs whose last phase is this one."),
    click.option("--error", metavar="TEXT", help="Only jobs whose error contains this text."),
)
#: The parameters that click makes of these options.
_NAMES = JobFilters.__annotations__.keys() - {"labels"} | {"label"}


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator or not name:
        raise click.ClickException(f"--label {text!r} is not a label: write it as NAME:VALUE, for example project:x")
    return name, value
