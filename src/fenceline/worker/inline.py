"""Runs jobs where they were enqueued, one after the other, for tests: the same state machine, in one process."""

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.schedule_decorator import declare_schedules
from fenceline.database import calls
from fenceline.delivery.postgres import PostgresDelivery
from fenceline.engine.engine import Engine
from fenceline.engine.statistics import RunStatistics
from fenceline.model.worker_settings import WorkerSettings
from fenceline.runtime.scheduler import Scheduler
from fenceline.worker.lifespan import lifespan

#: Nothing renews the lease, so no handler may take longer than this.
SETTINGS = WorkerSettings(lease_seconds=3600.0)

_draining: "set[App]" = set()


async def drain(app: App, statistics: RunStatistics | None = None) -> int:
    """Run jobs until none is claimable, including those that they enqueue; returns how many attempts that took."""
    count = 0
    if app in _draining or not app_parts(app).handlers:
        return count  # a handler enqueued something: the drain that runs it will run that too
    _draining.add(app)
    engine = Engine(app, PostgresDelivery(app), SETTINGS, isolates=False, statistics=statistics)
    database = app_parts(app).database()
    scheduler = Scheduler(database.call)
    try:
        async with lifespan(app):
            await declare_schedules(app_parts(app))
            await engine.register()
            found = 1
            while found:
                # First make claimable what is due, and what the last jobs have brought.
                await scheduler.run_once()
                await database.call(calls.upkeep.maintain(interval_seconds=0))
                found = 0
                while ran := await engine.run_next():
                    found += ran
                count += found
            await engine.sign_off()
    finally:
        _draining.discard(app)
        await engine.close()
    return count
