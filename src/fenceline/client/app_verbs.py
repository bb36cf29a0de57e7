"""The verbs that an app has both for async code and, as `app.sync`, for blocking code.

`scripts/generate_sync.py` makes `sync_app_verbs.py` of it, so it goes through a `Database` and awaits nothing else.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.enqueuer import Enqueuer
from fenceline.client.groups import Group
from fenceline.client.handler_parts import handler_parts
from fenceline.client.job import Job
from fenceline.client.jobs import Jobs
from fenceline.client.lanes import Lanes
from fenceline.client.schedules import Schedules
from fenceline.client.stats import Statistics
from fenceline.client.system import System
from fenceline.runtime.database import GetDatabase
from fenceline.runtime.lock_block import OutsideBlock, holding, inside, lock_name
from fenceline.runtime.lock_keeper import HeldLock, lost_error

if TYPE_CHECKING:
    from fenceline.client.app_parts import AppParts
    from fenceline.client.handler import Handler

R = TypeVar("R")


class AppVerbs:
    def __init__(self, parts: "AppParts") -> None:
        self._parts = parts
        self._get_database: GetDatabase = parts.database
        self.jobs = Jobs(self._get_database)
        """All jobs: find them, watch them, act on many of them."""
        self.lanes = Lanes(self._get_database)
        """All lanes: look at them, create, change and drain them."""
        self.system = System(self._get_database)
        """The whole queue: drain it, its retention, its limits, its locks."""
        self.schedules = Schedules(self._get_database)
        """All schedules: look at them, change, pause and run them."""
        self.stats = Statistics(self._get_database)
        """Backlog, throughput, errors and slow jobs."""

    # Overloads rather than `str | Handler[..., R]`, with which mypy cannot read `to_thread(app.sync.enqueue, "kind")`.
    @overload
    async def enqueue(
        self, kind: "Handler[..., R]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[R]: ...
    @overload
    async def enqueue(
        self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[Any]: ...
    async def enqueue(
        self, kind: "str | Handler[..., Any]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[Any]:
        """Enqueue by the kind's name, or its handler. Args are validated when the handler is known here."""
        handler = self._parts.handlers.get(kind) if isinstance(kind, str) else kind
        if handler is None:
            return await self.jobs.enqueue(str(kind), args, options)
        enqueuer: Enqueuer[..., Any] = Enqueuer(self._get_database, handler_parts(handler), options)
        return await enqueuer.enqueue_args({} if args is None else args)

    def group(
        self, name: str | None = None, *, tenant: str | None = None, actor: str | None = None, connection: Any = None
    ) -> Group:
        """Jobs that belong together, enqueued in one statement when the block ends. See `Group`.

        `tenant` and `actor` apply to all of them; `connection` enqueues them in your transaction.
        """
        return Group(self._get_database, self._parts.handlers, name, tenant=tenant, actor=actor, connection=connection)

    @asynccontextmanager
    async def lock(
        self,
        namespace: str,
        id: str | int,
        *,
        tenant: str = "default",
        timeout: float | None = None,
        lease_seconds: float = 30.0,
    ) -> AsyncIterator[HeldLock]:
        """Hold a named lock for a block of code outside handlers: the same locks as `ctx.lock` of jobs of the tenant.

            async with app.lock("edition", 42) as lock: ...

        It waits for its turn, at most `timeout` seconds (0: the lock must be free now), then raises LockTimeout. The
        lock is kept alive while the block runs and this event loop turns; if the process dies, the next in line gets it
        within `lease_seconds`. A block that lost its lock learns it from `lock.lost`, `lock.raise_if_lost()`, and
        LockLost when it ends. Raises LockCycle, InvalidName, InvalidOption.
        """
        block = OutsideBlock(
            namespace, lock_name(namespace, id), tenant=tenant, timeout=timeout, lease_seconds=lease_seconds
        )
        database = self._get_database()
        lock = await database.take_lock(block, holding())
        try:
            with inside(block):
                yield lock
        finally:
            # Also when the lease is over, so that the next in line does not wait for others to notice.
            is_kept = await database.release_lock(block)
        if not is_kept:
            raise lost_error(lock)
