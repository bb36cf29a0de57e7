"""Values as JSON text that PostgreSQL accepts as jsonb, whatever they hold: for logs and errors, where a value that
cannot be stored as it is must not cost the rest.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

#: About 4200 digits: Python refuses to write longer integers in decimal.
MAX_BITS = 14_000
# A zero character after an even number of backslashes: after an odd number it is the text "\u0000" itself.
_ZERO = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def has_zero_character(text: str) -> bool:
    """Whether JSON text holds the one character that jsonb cannot."""
    return "\\u0000" in text and _ZERO.search(text) is not None


def stored_json(value: Any) -> str:
    """JSON text; what neither JSON nor jsonb can hold is replaced by something readable."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, NaN, cycles
        text = json.dumps(_readable(value, 20), ensure_ascii=False, default=str)
    if "\\u0000" in text:
        text = _ZERO.sub("\\1\N{REPLACEMENT CHARACTER}", text)
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair becomes "?"


def _readable(value: Any, depth: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return hex(value)
    if depth == 0 and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        return {str(key): _readable(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(inner, depth - 1) for inner in value]
    return value
