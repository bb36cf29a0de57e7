"""Fires schedules that are due. Any number of schedulers may run, in workers and servers: each tick gets through once.

    due_schedules ──► decide (ticks, windows, misfires: computed here) ──► fire_schedule

The last is one statement that locks the schedule's row, compares it with what was read, and writes ticks and jobs. So a
scheduler may die at any point: either nothing has happened and the next one sees the same ticks, or everything has.
"""

import logging
from dataclasses import dataclass

from fenceline.database import calls
from fenceline.database.call import RunCall
from fenceline.errors import ConnectionLost, DatabaseBusy, DatabaseUnavailable
from fenceline.model.schedule import Schedule, decide

log = logging.getLogger("fenceline.scheduler")

#: Schedules read at a time.
BATCH = 100


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one look: how many jobs were made, and the seconds until the next tick."""

    fired: int
    next_seconds: float | None


class Scheduler:
    """`call` runs a call on the database: a worker's connection, or `app_parts(app).database().call`. A schedule for
    which it raises DatabaseBusy is put off.
    """

    def __init__(self, call: RunCall) -> None:
        self._call = call

    async def run_once(self) -> Round:
        """Decide every tick that is due. Harmless at any time, however often it is called."""
        fired = 0
        waits: list[float] = []
        seen: set[tuple[str, int]] = set()
        while True:
            due = await self._call(calls.schedules.due_schedules(BATCH))
            # Those still due after their turn are being fired by somebody else, or come again next round.
            new = [schedule for schedule in due if (schedule.name, schedule.revision) not in seen]
            for schedule in new:
                seen.add((schedule.name, schedule.revision))
                made, wait = await self._fire(schedule)
                fired += made
                waits += [] if wait is None else [wait]
            if not new or len(due) < BATCH:
                return Round(fired, min(waits, default=None))

    async def _fire(self, schedule: Schedule) -> tuple[int, float | None]:
        """Jobs made, and seconds until its next tick."""
        try:
            decision = decide(schedule, schedule.now)
            made: int | None = await self._call(calls.schedules.fire_schedule(schedule, decision))
        except (DatabaseUnavailable, ConnectionLost):
            raise  # not the schedule's fault: it stays due until somebody gets through
        except DatabaseBusy:
            log.warning("schedule %s has to wait: somebody's open transaction is in the way", schedule.name)
            return 0, None
        except Exception as error:
            # Such as a time zone that this machine does not know. It must not stop the other schedules, and another
            # machine may know it.
            log.exception("schedule %s cannot be fired", schedule.name)
            await self._call(calls.schedules.defer_schedule(schedule, f"{type(error).__name__}: {error}"))
            return 0, None
        if decision.next_at is None:
            return made or 0, None
        return made or 0, (decision.next_at - schedule.now).total_seconds()
