"""What `worker` and `runner` write to standard error."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fenceline.cli.settings import setting_option

F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: str) -> Callable[[F], F]:
    """`--log-format`, `--log-level` and `--log-jobs`, as settings of the command."""

    def add(function: F) -> F:
        for option in (
            setting_option(
                "--log-jobs", key=f"{command}.log_jobs", is_flag=True, help="Also log what handlers write with ctx.log."
            ),
            setting_option(
                "--log-level",
                key=f"{command}.log_level",
                type=click.Choice(["debug", "info", "warning", "error"]),
                help="info: also jobs that succeed; debug: a traceback for every failure; default: neither.",
            ),
            setting_option(
                "--log-format",
                key=f"{command}.log_format",
                type=click.Choice(["text", "json"]),
                default="text",
                help="Log text, or JSON with the same fields.",
            ),
        ):
            function = option(function)
        return function

    return add
