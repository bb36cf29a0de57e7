"""When clocks on walls show what: an independent account of ticks, made by walking through every minute.

It shares nothing with the program but the zones of the standard library.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)

#: All have changes of their clocks but the last; by half hours and by two, at midnight, on both hemispheres.
ZONES = (
    "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Havana", "America/Santiago",
    "America/Nuuk", "America/Miquelon", "Atlantic/Azores", "Europe/London", "Europe/Dublin", "Europe/Berlin",
    "Europe/Chisinau", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Jerusalem", "Australia/Adelaide",
    "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter",
    "Antarctica/Troll", "Asia/Kolkata",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pattern:
    """A cron expression, and what it means: minutes and hours of every day."""

    cron: str
    minutes: frozenset[int]
    hours: frozenset[int]
    fixed: bool  # happens once a day, whatever the clocks do

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours


def fixed(hour: int, minute: int) -> Pattern:
    return Pattern(f"{minute} {hour} * * *", frozenset({minute}), frozenset({hour}), fixed=True)


def recurring(cron: str, minutes: range, hours: range = range(24)) -> Pattern:
    return Pattern(cron, frozenset(minutes), frozenset(hours), fixed=False)


def minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    """Every minute after `start`, up to and with `end`; both are whole minutes in UTC."""
    while start < end:
        start += MINUTE
        yield start


def expected_ticks(pattern: Pattern, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """The ticks after `start`, up to and with `end`."""
    if not pattern.fixed:
        return [moment for moment in minutes(start, end) if pattern.matches(moment.astimezone(zone))]
    # A fixed time has come at the first minute at which the clock shows it, or a later one if it skips it.
    ticks: set[datetime] = set()
    highest = (start - timedelta(days=1)).astimezone(zone).replace(tzinfo=None)
    for moment in minutes(start - timedelta(days=1), end):
        wall = moment.astimezone(zone).replace(tzinfo=None)
        while highest < wall:
            highest += MINUTE
            if pattern.matches(highest):
                ticks.add(moment)
    return sorted(tick for tick in ticks if tick > start)


def changes(zone: ZoneInfo, year: int) -> list[datetime]:
    """The moments of a year at which the clocks of a zone are changed."""
    found = []
    moment = datetime(year, 1, 1, tzinfo=UTC)
    while moment.year == year:
        following = moment + timedelta(minutes=30)
        if moment.astimezone(zone).utcoffset() != following.astimezone(zone).utcoffset():
            found.append(following)
        moment = following
    return found
