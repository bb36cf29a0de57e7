"""Hides args and results in answers and streams, and secrets of paths in logs."""

import json
from typing import Any

from pydantic_core import from_json

CALLBACKS = "/v1/callbacks/"
#: Fields hidden anywhere in an answer: those of jobs, steps, checkpoints, schedules, triggers.
HIDDEN = frozenset({"args", "result", "snapshot", "state"})
#: Replaces their value; null stays null.
MARK = {"$hidden": True}


def hide(document: str | bytes) -> str:
    """JSON text for a caller whose role hides args and results."""
    return json.dumps(_without(from_json(document)))


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: MARK if name in HIDDEN and each is not None else _without(each) for name, each in value.items()}


def shown_path(path: str) -> str:
    """A path for logs, without the secret of a callback, wherever we are mounted."""
    before, found, _secret = path.partition(CALLBACKS)
    return f"{before}{found}…" if found else path
