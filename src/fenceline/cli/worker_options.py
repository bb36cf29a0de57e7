"""Options of both `worker` and `runner`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fenceline.cli.option_values import read_names
from fenceline.cli.settings import setting_option

if TYPE_CHECKING:
    from fenceline.model.worker_settings import WorkerSettings

F = TypeVar("F", bound=Callable[..., Any])


def worker_options(command: str) -> Callable[[F], F]:
    """Add the settings of the command, whose values `read_settings` takes, and `--once` with its exit code."""
    per = ", per process" if command == "worker" else ""
    settings: dict[str, dict[str, Any]] = {
        "lanes": {"help": "Lanes to serve, separated by commas; default: all."},
        "name": {"help": "Name to show; default: host and process id."},
        "labels": {"help": "Labels as name=value, separated by commas; jobs can require them."},
        "concurrency": {"default": 100, "help": f"Async handlers at a time{per}."},
        "threads": {"default": 10, "help": f"Blocking handlers at a time{per}."},
        "isolated": {"default": 2, "help": f"Isolated handlers at a time{per}, each in a separate process."},
        "grace": {"default": 30.0, "help": "Seconds that handlers have to finish on shutdown."},
        "log_format": {
            "type": click.Choice(["text", "json"]),
            "default": "text",
            "help": "Log text, or JSON with the same fields.",
        },
        "log_level": {
            "type": click.Choice(["debug", "info", "warning", "error"]),
            "help": "info: also jobs that succeed; debug: a traceback for every failure; default: neither.",
        },
        "log_jobs": {"is_flag": True, "help": "Also log what handlers write with ctx.log."},
    }
    options = [
        *(setting_option(f"{command}.{name}", **details) for name, details in settings.items()),
        click.option("--once", is_flag=True, help="Run one job and exit: 0 success, 1 failure, 2 nothing to do."),
        click.option(
            "--empty-exit",
            type=click.IntRange(0, 255),
            default=2,
            show_default=True,
            help="Exit code of --once when there is nothing to do.",
        ),
    ]

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def read_settings(given: Mapping[str, Any], **others: Any) -> "WorkerSettings":
    """Raises UsageError."""
    from fenceline.model.worker_settings import WorkerSettings

    values = dict(given)
    lanes, labels, grace = values.pop("lanes"), values.pop("labels"), values.pop("grace")
    try:
        return WorkerSettings(
            **values,
            lanes=tuple(read_names(lanes)) if lanes else None,
            labels=_read_labels(labels or ""),
            grace_seconds=grace,
            **others,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _read_labels(text: str) -> dict[str, str] | None:
    """`zone=a,size=b` as a dictionary. Raises UsageError."""
    labels: dict[str, str] = {}
    for part in read_names(text):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--labels {part!r}: write it as name=value")
        labels[name] = value
    return labels or None
