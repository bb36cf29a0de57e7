"""A schedule as it is at one moment, and what has to be decided about its ticks. Frozen values, no I/O."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from fenceline.model.cron import Timing, latest_ticks, read_timing, read_zone, ticks_after
from fenceline.model.window import Window, read_windows

Misfire = Literal["skip", "once", "all"]

#: A tick that is decided later than this counts as missed, even if the next one has not come yet.
PATIENCE = timedelta(seconds=60)
#: Only this many of the missed ticks, the latest, are looked at one by one.
LOOKBACK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What became of one tick: fired, deduplicated, refused (see error), or skipped: window, missed.

    `from_at`: where this tick stands for very many missed ones, the first of them.
    """

    tick_at: datetime
    outcome: str
    decided_at: datetime
    from_at: datetime | None
    job: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is enqueued and when. `overrides` are the settings of operators, which win over those in code."""

    name: str
    kind: str
    args: dict[str, Any]
    options: dict[str, Any]
    tenant: str
    cron: str | None
    every: int | None
    timezone: str
    misfire: Misfire
    misfire_limit: int
    windows: list[dict[str, str]]
    paused: bool
    source: Literal["code", "operator"]
    overrides: dict[str, Any]
    revision: int
    settled_at: datetime
    next_at: datetime | None
    last_at: datetime | None
    last_job: str | None
    error: str | None
    created_at: datetime
    changed_at: datetime
    changed_by: str | None
    declared_at: datetime | None
    now: datetime

    @property
    def timing(self) -> Timing:
        """Raises ValueError when this program cannot make sense of it."""
        return read_timing(self.cron, self.every, self.timezone)

    def next_runs(self, count: int = 5) -> list[datetime]:
        """The next moments at which it fires, windows left out, in its own zone; none while it is paused."""
        if self.paused:
            return []
        zone, windows, runs = read_zone(self.timezone), read_windows(self.windows), list[datetime]()
        for seen, tick in enumerate(ticks_after(self.timing, max(self.settled_at, self.now))):
            wall = tick.astimezone(zone)
            if not _is_covered(wall, windows):
                runs.append(wall)
            if len(runs) >= count or seen >= LOOKBACK * count:
                break
        return runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to the ticks up to a moment, in order: fire, window or missed; and the tick after them."""

    until: datetime
    ticks: list[datetime]
    outcomes: list[str]
    from_at: list[datetime | None]
    next_at: datetime | None


def decide(schedule: Schedule, now: datetime) -> Decision:
    """Apply windows and the misfire policy to every tick that has not been decided. Raises ValueError.

    A tick is missed when its turn comes more than a minute after its time, or when the next tick has come as well.
    `skip` lets missed ticks go; `once` makes up for all of them with one run, unless a tick that is on time fires
    anyway; `all` runs the latest `misfire_limit`. Nothing is made up for inside a window.
    """
    timing, zone, windows = schedule.timing, read_zone(schedule.timezone), read_windows(schedule.windows)
    ticks = latest_ticks(timing, schedule.settled_at, now, LOOKBACK)
    covered = {tick for tick in ticks if _is_covered(tick.astimezone(zone), windows)}
    on_time = {tick for tick in ticks[-1:] if now - tick <= PATIENCE} - covered
    missed = [tick for tick in ticks if tick not in on_time | covered]
    if _is_covered(now.astimezone(zone), windows):
        made_up: list[datetime] = []
    elif schedule.misfire == "all":
        made_up = missed[-schedule.misfire_limit :]
    elif schedule.misfire == "once" and not on_time:
        made_up = missed[-1:]
    else:
        made_up = []
    fire = on_time | set(made_up)
    from_at: list[datetime | None] = [None] * len(ticks)
    if len(ticks) == LOOKBACK and ticks[0] not in fire:
        from_at[0] = timing.next_after(schedule.settled_at)
    return Decision(
        until=now,
        ticks=ticks,
        outcomes=["fire" if tick in fire else "window" if tick in covered else "missed" for tick in ticks],
        from_at=from_at,
        next_at=timing.next_after(now),
    )


def _is_covered(wall: datetime, windows: list[Window]) -> bool:
    return any(window.covers(wall) for window in windows)
