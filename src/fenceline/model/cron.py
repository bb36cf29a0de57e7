"""Ticks: the moments at which a schedule fires, as pure computation.

Cron expressions are read by cronsim, which is asked about wall-clock times only. What a wall-clock time means where
clocks are changed is decided here, for the libraries get it wrong: croniter 6 fires a daily job twice when the clocks
go back, cronsim 2.8 loses ticks where they move by half an hour (Australia/Lord_Howe).

- A fixed time (neither the minute nor the hour begins with `*`, as "30 2 * * *") happens once a day. In the skipped
  hour it fires when the clocks have gone forward, in the repeated hour the first time.
- A recurring time ("*/15 * * * *", "0 * * * *", "0 */2 * * *") fires whenever the clock on the wall shows it: not in
  the skipped hour, and in both passes of the repeated one, so that every real hour has its ticks.
- An interval knows no clocks: its ticks are the whole multiples of its seconds since 1970-01-01T00:00Z.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

FIELDS = 5
MAX_SECONDS = 366 * 86400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
#: Clocks never change twice within this time.
CALM = timedelta(days=1)


class Timing(Protocol):
    def next_after(self, moment: datetime) -> datetime | None:
        """The first tick later than a moment, in UTC; None: there is none within 50 years."""


@dataclass(frozen=True, slots=True)
class Interval:
    seconds: int

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int):
            raise ValueError(f"every {self.seconds!r} is not a whole number of seconds")  # noqa: TRY004 - bad input
        if not 1 <= self.seconds <= MAX_SECONDS:
            raise ValueError(f"every {self.seconds} is out of range: use 1 to {MAX_SECONDS} seconds")

    def next_after(self, moment: datetime) -> datetime:
        step = timedelta(seconds=self.seconds)
        return EPOCH + ((moment - EPOCH) // step + 1) * step


@dataclass(frozen=True, slots=True)
class Cron:
    text: str
    zone: ZoneInfo
    _is_fixed: bool = field(init=False)

    def __post_init__(self) -> None:
        fields = str(self.text).split()  # whatever was given: the message names it
        if len(fields) != FIELDS:
            raise ValueError(
                f"cron {self.text!r} is not valid: use five fields (minute, hour, day of the month, month, day of the "
                "week); for less than a minute use every="
            )
        try:
            first = next(CronSim(self.text, datetime(2024, 1, 1)), None)  # noqa: DTZ001 - a wall-clock time
        except CronSimError as error:
            raise ValueError(f"cron {self.text!r} is not valid: {error}") from error
        if first is None:
            raise ValueError(f"cron {self.text!r} never fires")
        object.__setattr__(self, "_is_fixed", not fields[0].startswith("*") and not fields[1].startswith("*"))

    def next_after(self, moment: datetime) -> datetime | None:
        return self._next_fixed(moment) if self._is_fixed else self._next_recurring(moment)

    def _next_fixed(self, moment: datetime) -> datetime | None:
        # Wall-clock times in their order have moments in the same order, so the first that is late enough is the one.
        for wall in CronSim(self.text, self._wall(moment)):
            tick = first_moment(wall, self.zone)
            if tick > moment:
                return tick
        return None

    def _next_recurring(self, moment: datetime) -> datetime | None:
        # From one change of the clocks to the next, wall-clock time is UTC and a constant.
        start, wall = moment, self._wall(moment)
        while True:
            found = next(CronSim(self.text, wall), None)
            if found is None:
                return None
            tick = found.replace(tzinfo=UTC) - offset(start, self.zone)
            change = first_change(start, tick, self.zone)
            if change is None:
                return tick
            start, wall = change, self._wall(change) - SECOND  # the change itself may be a tick

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)


def read_zone(name: str) -> ZoneInfo:
    """The zone of that name. Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise ValueError(f'timezone {name!r} is unknown: use a name such as "Europe/Berlin"') from error


def read_timing(cron: str | None, every: int | None, timezone: str) -> Timing:
    """Raises ValueError, which names the value."""
    zone = read_zone(timezone)
    if cron is not None and every is not None:
        raise ValueError(f"a schedule has either cron or every, not both: cron {cron!r}, every {every!r}")
    if cron is not None:
        return Cron(cron, zone)
    if every is not None:
        return Interval(every)
    raise ValueError("a schedule needs either cron or every")


def ticks_after(timing: Timing, moment: datetime) -> Iterator[datetime]:
    tick = timing.next_after(moment)
    while tick is not None:
        yield tick
        tick = timing.next_after(tick)


def latest_ticks(timing: Timing, after: datetime, until: datetime, most: int) -> list[datetime]:
    """The ticks later than `after`, up to and with `until`, in order; of very many the latest `most`."""
    # Backwards in ever longer steps: a year without schedulers must not mean half a million ticks to count.
    reach = timedelta(hours=1)
    while True:
        start = max(after, until - reach)
        ticks: list[datetime] = []
        for tick in ticks_after(timing, start):
            if tick > until:
                break
            ticks.append(tick)
        if start == after or len(ticks) >= most:
            return ticks[-most:]
        reach *= 4


def offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def first_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks first show a time; if they skip it, when they have done so."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    # Before a skipped hour and after it the same time means two moments, and the change is between them.
    return find_change(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), moment, zone)


def first_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """The first moment after `start`, up to and with `end`, at which the clocks are changed."""
    before = offset(start, zone)
    while start < end:
        step = min(start + CALM, end)
        if offset(step, zone) != before:
            return find_change(start, step, zone)
        start = step
    return None


def find_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime:
    """The whole second, later than `start` and up to `end`, from which on the offset is no longer that of `start`."""
    before = offset(start, zone)
    seconds = range(int(start.timestamp()) + 1, ceil(end.timestamp()))
    place = bisect_left(seconds, True, key=lambda second: offset(datetime.fromtimestamp(second, UTC), zone) != before)
    return datetime.fromtimestamp(seconds.start + place, UTC)
