"""The blocking side of the application object."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from fenceline.client.options import EnqueueOptions
from fenceline.client.sync_caller import SyncCaller
from fenceline.client.sync_groups import SyncGroup
from fenceline.client.sync_job_verbs import SyncJob
from fenceline.client.sync_schedule_verbs import SyncSchedules
from fenceline.client.sync_stats_verbs import SyncStatistics
from fenceline.client.sync_verbs import SyncJobs, SyncLanes, SyncSystem

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline
    from fenceline.database.migrate import MigrationReport


class SyncFenceline:
    """The verbs of `Fenceline` for blocking code: `app.sync`."""

    def __init__(self, app: "Fenceline") -> None:
        self._app = app
        self._caller = SyncCaller(app.make_caller, tracing=app.tracing)
        self.jobs = SyncJobs(self.caller)
        self.lanes = SyncLanes(self.caller)
        self.system = SyncSystem(self.caller)
        self.schedules = SyncSchedules(self.caller)
        self.stats = SyncStatistics(self.caller)

    def enqueue(
        self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> SyncJob[Any]:
        """Enqueue by the kind's name. Args are validated when the handler is registered here."""
        handler = self._app.handlers.get(kind)
        if handler is not None:
            return handler.options(**options).sync.enqueue_args({} if args is None else args)
        return self.jobs.enqueue(kind, args, options)

    def dsn(self) -> str:
        """The database in use; starts the embedded one if need be."""
        return self._caller.run(lambda _caller: self._app.dsn())

    def group(self, name: str | None = None, *, tenant: str | None = None, connection: Any = None) -> SyncGroup:
        """Jobs that belong together, enqueued together. See `Group`."""
        return SyncGroup(self.caller, self._app.handlers, name, tenant=tenant, connection=connection)

    def migrate(self) -> "MigrationReport":
        """Bring the database's schema up to date. Harmless to repeat."""
        return self._caller.run(lambda caller: caller.migrate())

    def close(self) -> None:
        """Close the blocking side's connections, and leave the embedded database unless an event loop uses it."""
        self._caller.close()
        self._app.leave_database()

    def caller(self) -> SyncCaller:
        return self._caller
