"""Values as they are written on the command line."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_names(text: str) -> list[str]:
    """From `a,b`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def read_span(text: str) -> timedelta | None:
    """From 90s, 15m, 2h, 7d or 1w; None if the text is no span. Raises OverflowError."""
    span = re.fullmatch(r"(\d+)([smhdw])", text)
    return None if span is None else timedelta(**{_UNITS[span[2]]: int(span[1])})


def read_moment(text: str) -> datetime | None:
    """From a time with its zone; None if the text is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.utcoffset() is None else moment


def read_json(_ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"this is not JSON: {error}", param=param) from error
