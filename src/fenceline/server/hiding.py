"""Args and results, kept from those whose role hides them: in every answer, and in every event of a stream."""

import json
from typing import Any

from pydantic_core import from_json

#: What is hidden, wherever it stands in an answer: of jobs, steps, checkpoints, schedules, triggers.
HIDDEN = frozenset({"args", "result", "snapshot", "state"})
#: Stands in its place; null stays null.
MARK = {"$hidden": True}


def hide(document: str | bytes) -> str:
    """JSON text, without what is hidden."""
    return json.dumps(_without(from_json(document)))


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: MARK if name in HIDDEN and each is not None else _without(each) for name, each in value.items()}
