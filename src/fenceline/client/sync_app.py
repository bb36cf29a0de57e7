"""The blocking side of the application object."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.sync_groups import SyncGroup
from fenceline.client.sync_job import SyncJob
from fenceline.client.sync_jobs import SyncJobs
from fenceline.client.sync_lanes import SyncLanes
from fenceline.client.sync_locks import hold_lock
from fenceline.client.sync_schedules import SyncSchedules
from fenceline.client.sync_stats import SyncStatistics
from fenceline.client.sync_system import SyncSystem
from fenceline.runtime.lock_block import named_block
from fenceline.runtime.lock_keeper import HeldLock

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline
    from fenceline.client.app_parts import AppParts
    from fenceline.client.handler import Handler
    from fenceline.database.migrate import MigrationReport

R = TypeVar("R")


class SyncFenceline:
    """The verbs of `Fenceline` for blocking code: `app.sync`."""

    def __init__(self, app: "Fenceline", parts: "AppParts") -> None:
        self._app = app
        self._parts = parts
        get_database = parts.sync_database
        self.jobs = SyncJobs(get_database)
        self.lanes = SyncLanes(get_database)
        self.system = SyncSystem(get_database)
        self.schedules = SyncSchedules(get_database)
        self.stats = SyncStatistics(get_database)

    @overload
    def enqueue(
        self, kind: "Handler[..., R]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> SyncJob[R]: ...
    @overload
    def enqueue(
        self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> SyncJob[Any]: ...
    def enqueue(
        self, kind: "str | Handler[..., Any]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> SyncJob[Any]:
        """Enqueue by the kind's name, or its handler. Args are validated when the handler is known here."""
        handler = self._parts.handlers.get(kind) if isinstance(kind, str) else kind
        if handler is not None:
            return handler.options(**options).sync.enqueue_args({} if args is None else args)
        return self.jobs.enqueue(str(kind), args, options)

    def dsn(self) -> str:
        """The database in use; starts the embedded one if need be."""
        return self._parts.sync_database().run(lambda _database: self._app.dsn())

    def group(
        self, name: str | None = None, *, tenant: str | None = None, actor: str | None = None, connection: Any = None
    ) -> SyncGroup:
        """Jobs that belong together, enqueued together. See `Group`."""
        return SyncGroup(
            self._parts.sync_database, self._parts.handlers, name, tenant=tenant, actor=actor, connection=connection
        )

    def lock(
        self,
        namespace: str,
        id: str | int,
        *,
        tenant: str = "default",
        timeout: float | None = None,
        lease_seconds: float = 30.0,
    ) -> AbstractContextManager[HeldLock]:
        """Hold a named lock for a block of code outside handlers. See `Fenceline.lock`."""
        block = named_block(namespace, id)
        return hold_lock(self._parts.sync_database, block, tenant=tenant, timeout=timeout, lease_seconds=lease_seconds)

    def migrate(self) -> "MigrationReport":
        """Bring the database's schema up to date. Harmless to repeat."""
        return self._parts.sync_database().run(lambda database: database.migrate())

    def close(self) -> None:
        """Close the blocking side's connections, and leave the embedded database unless an event loop uses it."""
        self._parts.close_blocking()
