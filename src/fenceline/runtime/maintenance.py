"""The fleet's maintenance: every worker and every server runs it, and whoever comes first does the work.

One statement (`fenceline.maintain`) does what is due, once per interval for the whole fleet however many ask. Slower
work, on partitions and retention, is done about once a minute in transactions of its own.
"""

import asyncio
import logging
import random
import time
from dataclasses import replace

from fenceline.database import calls
from fenceline.database.call import RunCall
from fenceline.errors import DatabaseBusy
from fenceline.runtime.retention import Retention
from fenceline.runtime.scheduler import Scheduler

log = logging.getLogger("fenceline.maintenance")

MAINTENANCE_SECONDS = 1.0
#: Timers that are due within so long of each other are promoted together.
TIMER_SECONDS = 0.05
UPKEEP_SECONDS = 60.0
#: How much of every second goes to deleting expired jobs, while there are any.
RETENTION_SECONDS = 0.25


class Maintenance:
    """`call` runs a statement, perhaps a slow one, so it should use a connection that nobody else waits for. It raises
    DatabaseBusy rather than wait for an open transaction: the rest goes on, and that part is tried again later.
    """

    def __init__(self, call: RunCall) -> None:
        self._call = call
        self._scheduler = Scheduler(call)
        self._retention = Retention(call)
        self._upkeep_at = 0.0  # by the monotonic clock

    async def run(self) -> None:
        """Run until cancelled. What fails is tried again."""
        interval = MAINTENANCE_SECONDS / 2
        while True:
            done = await self.try_once(interval)
            # Somebody in the fleet has to; those who did not get a turn look less often.
            pause = (2 if done is None else 1) * MAINTENANCE_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - jitter
            interval = MAINTENANCE_SECONDS / 2
            if done is not None and done.next_seconds is not None and done.next_seconds < pause:
                # A timer or a schedule is due before that: be in time, and do not let our own last turn hold us up.
                pause = max(done.next_seconds, 0.0) + TIMER_SECONDS
                interval = TIMER_SECONDS / 2
            await asyncio.sleep(pause)

    async def try_once(self, interval_seconds: float = MAINTENANCE_SECONDS / 2) -> calls.upkeep.Maintained | None:
        """As `run_once`, but errors are only logged: one missed turn does no harm."""
        try:
            return await self.run_once(interval_seconds)
        except DatabaseBusy as error:
            log.warning("maintenance: a part had to be put off, an open transaction is in the way: %s", error)
        except Exception:
            log.exception("maintenance failed")
        return None

    async def run_once(self, interval_seconds: float = MAINTENANCE_SECONDS / 2) -> calls.upkeep.Maintained | None:
        """Do the fleet's maintenance if nobody else has just done it, and fire the schedules that are due."""
        done = await self._call(calls.upkeep.maintain(interval_seconds=interval_seconds))
        if done is not None and done.blocked:
            log.warning("maintenance: %s had to be put off, an open transaction is in the way", ", ".join(done.blocked))
        if done is not None and done.schedules_due:
            round_ = await self._scheduler.run_once()
            waits = [seconds for seconds in (done.next_seconds, round_.next_seconds) if seconds is not None]
            done = replace(done, next_seconds=min(waits, default=None))
        if done is not None and done.limits_tenants:
            await self._call(calls.upkeep.count_tenants())
        if time.monotonic() >= self._upkeep_at:
            # After everything urgent.
            self._upkeep_at = time.monotonic() + UPKEEP_SECONDS
            if await self._call(calls.upkeep.tidy_up(interval_seconds=UPKEEP_SECONDS)):
                await self._call(calls.upkeep.create_partitions())
                self._retention.begin()
        await self._retention.work(RETENTION_SECONDS)
        return done
