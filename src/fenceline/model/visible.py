"""Text of others, made fit for a terminal: characters that would steer it, or turn lines around, are shown instead.

Names, labels, errors, progress and log lines are written by whoever enqueues or runs a job, and read by operators. ESC
and its C1 relatives start sequences that move the cursor, set the title or the clipboard; bidi marks make a line read
as another.
"""

import re

#: C0 but for tab and newline, DEL and C1; marks and overrides of direction; separators of lines; invisible tags.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with each character that a terminal would obey replaced by its escape, as Python writes it."""
    return _STEERING.sub(_escape, text)


def visible_json(text: str) -> str:
    """The same for JSON text, in JSON's own way: its value stays what it is."""
    return _STEERING.sub(lambda found: "".join(f"\\u{unit:04x}" for unit in _utf16(found[0])), text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _utf16(character: str) -> list[int]:
    units = character.encode("utf-16-be")
    return [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
