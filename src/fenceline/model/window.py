"""Maintenance windows: times of the week in which a schedule does not fire."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY = "mon-sun"
DAY_MINUTES = 24 * 60
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Window:
    """From one time of day until just before another, in local time; `days` are those on which it begins."""

    days: frozenset[int]
    start: int  # minutes of the day
    end: int  # of the same day, or of the next one when it is not after the start

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """From {"days": "mon-fri,sun", "from": "22:00", "to": "04:00"}; without days, every day. Raises ValueError."""
        if (
            not isinstance(given, Mapping)
            or given.keys() - {"days", "from", "to"}
            or not {"from", "to"} <= given.keys()
        ):
            raise ValueError(
                f'window {given!r} is not valid: use {{"days": "mon-fri", "from": "22:00", "to": "04:00"}}; days may '
                "be left out"
            )
        start, end = _minutes(given, "from"), _minutes(given, "to")
        if start == end:
            raise ValueError(f'window {given!r} is empty: a whole day is "00:00" to "24:00"')
        return cls(_days(given), start, end)

    def covers(self, wall: datetime) -> bool:
        minute, day = wall.hour * 60 + wall.minute, wall.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (minute >= self.start and day in self.days) or (minute < self.end and (day - 1) % 7 in self.days)


def read_windows(given: Any) -> list[Window]:
    """Raises ValueError."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"windows {given!r} is not a list of windows")  # noqa: TRY004 - bad input
    return [Window.from_json(window) for window in given]


def _minutes(given: Mapping[str, Any], name: str) -> int:
    text = given[name]
    if name == "to" and text == "24:00":
        return DAY_MINUTES
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f'{name} {text!r} of window {given!r} is not a time of day such as "22:00"')
    return int(found[1]) * 60 + int(found[2])


def _days(given: Mapping[str, Any]) -> frozenset[int]:
    text = given.get("days", EVERY_DAY)
    days: set[int] = set()
    for part in text.split(",") if isinstance(text, str) else [""]:
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS or part.endswith("-"):
            raise ValueError(f'days {text!r} of window {given!r} are not valid: use "mon-fri" or "sat,sun"')
        start, end = DAYS.index(first), DAYS.index(last or first)
        days |= {day % 7 for day in range(start, (end if end >= start else end + 7) + 1)}
    return frozenset(days)
