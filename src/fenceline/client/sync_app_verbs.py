"""The blocking twin of app_verbs.py.

Generated from app_verbs.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.handler_parts import handler_parts
from fenceline.client.sync_database import GetSyncDatabase
from fenceline.client.sync_enqueuer import SyncEnqueuer
from fenceline.client.sync_groups import SyncGroup
from fenceline.client.sync_job import SyncJob
from fenceline.client.sync_jobs import SyncJobs
from fenceline.client.sync_lanes import SyncLanes
from fenceline.client.sync_schedules import SyncSchedules
from fenceline.client.sync_stats import SyncStatistics
from fenceline.client.sync_system import SyncSystem
from fenceline.runtime.lock_block import OutsideBlock, holding, inside, lock_name
from fenceline.runtime.lock_keeper import HeldLock, lost_error

if TYPE_CHECKING:
    from fenceline.client.app_parts import AppParts
    from fenceline.client.handler import Handler

R = TypeVar("R")


class SyncAppVerbs:
    def __init__(self, parts: "AppParts") -> None:
        self._parts = parts
        self._get_database: GetSyncDatabase = parts.sync_database
        self.jobs = SyncJobs(self._get_database)
        """All jobs: find them, watch them, act on many of them."""
        self.lanes = SyncLanes(self._get_database)
        """All lanes: look at them, create, change and drain them."""
        self.system = SyncSystem(self._get_database)
        """The whole queue: drain it, its retention, its limits, its locks."""
        self.schedules = SyncSchedules(self._get_database)
        """All schedules: look at them, change, pause and run them."""
        self.stats = SyncStatistics(self._get_database)
        """Backlog, throughput, errors and slow jobs."""

    # Overloads rather than `str | Handler[..., R]`, with which mypy cannot read `to_thread(app.sync.enqueue, "kind")`.
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
        if handler is None:
            return self.jobs.enqueue(str(kind), args, options)
        enqueuer: SyncEnqueuer[..., Any] = SyncEnqueuer(self._get_database, handler_parts(handler), options)
        return enqueuer.enqueue_args({} if args is None else args)

    def group(
        self, name: str | None = None, *, tenant: str | None = None, actor: str | None = None, connection: Any = None
    ) -> SyncGroup:
        """Jobs that belong together, enqueued in one statement when the block ends. See `Group`.

        `tenant` and `actor` apply to all of them; `connection` enqueues them in your transaction.
        """
        return SyncGroup(
            self._get_database, self._parts.handlers, name, tenant=tenant, actor=actor, connection=connection
        )

    @contextmanager
    def lock(
        self,
        namespace: str,
        id: str | int,
        *,
        tenant: str = "default",
        timeout: float | None = None,
        lease_seconds: float = 30.0,
    ) -> Iterator[HeldLock]:
        """Hold a named lock for a block of code outside handlers: the same locks as `ctx.lock` of jobs of the tenant.

            with app.lock("edition", 42) as lock: ...

        It waits for its turn, at most `timeout` seconds (0: the lock must be free now), then raises LockTimeout. The
        lock is kept alive while the block runs and this event loop turns; if the process dies, the next in line gets it
        within `lease_seconds`. A block that lost its lock learns it from `lock.lost`, `lock.raise_if_lost()`, and
        LockLost when it ends. Raises LockCycle, InvalidName, InvalidOption.
        """
        block = OutsideBlock(
            namespace, lock_name(namespace, id), tenant=tenant, timeout=timeout, lease_seconds=lease_seconds
        )
        database = self._get_database()
        lock = database.take_lock(block, holding())
        try:
            with inside(block):
                yield lock
        finally:
            # Also when the lease is over, so that the next in line does not wait for others to notice.
            is_kept = database.release_lock(block)
        if not is_kept:
            raise lost_error(lock)
