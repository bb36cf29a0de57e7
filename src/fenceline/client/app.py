"""The application object: where handlers are registered and jobs come from."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from fenceline.backends.chosen import choose_delivery
from fenceline.client.app_parts import AppParts
from fenceline.client.codec import codec_from_environment
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.groups import Group
from fenceline.client.handler import Handler
from fenceline.client.job import Job
from fenceline.client.job_decorator import JobDecorator, check_extra_args
from fenceline.client.job_filters import JobFilters
from fenceline.client.jobs import Jobs
from fenceline.client.lanes import Lanes
from fenceline.client.locks import hold_lock
from fenceline.client.schedule_decorator import ScheduleDecorator, ScheduleSettings
from fenceline.client.schedules import Schedules
from fenceline.client.stats import Statistics
from fenceline.client.sync_app import SyncFenceline
from fenceline.client.system import System
from fenceline.database.dsn import Source
from fenceline.model.actor import default_actor
from fenceline.model.schedule import Misfire
from fenceline.model.watched import WatchEvent
from fenceline.runtime.lock_block import named_block
from fenceline.runtime.lock_keeper import HeldLock

if TYPE_CHECKING:
    from fenceline.backends.contract import BackendFactory
    from fenceline.client.credential_providers import CredentialProvider
    from fenceline.database.migrate import MigrationReport
    from fenceline.model.sealed import Codec

R = TypeVar("R")
HookT = TypeVar("HookT", bound=Callable[[], Any])
#: `async def middleware(ctx, call_next)`: awaits `call_next()` and returns what it returned, or something else.
Middleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]
#: `def middleware(ctx, call_next)`: the same for `def` handlers, in their own thread.
BlockingMiddleware = Callable[[Any, Callable[[], Any]], Any]
MiddlewareT = TypeVar("MiddlewareT", bound=BlockingMiddleware)


class Fenceline:
    """A queue: its database, its handlers, its jobs and lanes.

    `dsn` is a PostgreSQL database. Without it, `$FENCELINE_DSN` is used, or else an embedded PostgreSQL in
    `./.fenceline/`, which migrates itself on first use. Connections are opened when needed, at most `pool_size` per
    event loop.

        app = Fenceline()

        @app.job
        async def greet(name: str) -> str:
            return f"hello {name}"

        job = await greet.enqueue(name="world")
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        pool_size: int = 4,
        tracing: bool | None = None,
        credentials: "CredentialProvider | None" = None,
        codec: "Codec | None" = None,
        actor: str | None = None,
        delivery: "str | BackendFactory | None" = None,
        extra_args: Literal["refuse", "ignore"] = "refuse",
    ) -> None:
        """`tracing`: OpenTelemetry spans for enqueues and runs. None: if the program has configured an SDK.

        `credentials`: exchanges the `identity` of a job for temporary credentials just before it runs
        (`fenceline.credentials`).

        `codec`: encrypts args, results, errors, logs, steps and checkpoints before they are stored, for example a
        `Fernet` or `MultiFernet` of `cryptography`. None: one with the keys in `$FENCELINE_KEYS`, if set.

        `actor`: who enqueues and operates with this app; `created_by` of its jobs. None: the OS user and host.

        `delivery`: how jobs reach workers, in lanes without a setting of their own: "postgres", "arq" (messages in the
        Redis at `$FENCELINE_REDIS_URL`), "inline" (an enqueue runs the job in this process, for tests), or your own
        class (`fenceline.backends.contract.Backend`). None: `$FENCELINE_DELIVERY`, or "postgres". Raises
        BackendMisconfigured.

        `extra_args`: what to do with a job whose args the handler does not know, which happens while old and new
        workers run side by side. "refuse" leaves it to a worker whose handler accepts them, and fails it if there is
        none; "ignore" runs it without them. `@app.job(extra_args=…)` sets it for one kind.
        """
        check_extra_args(extra_args)
        self._parts = AppParts(
            Source(dsn),
            pool_size=pool_size,
            delivery=choose_delivery(delivery),
            actor=actor or default_actor(),
            tracing=tracing,
            codec=codec_from_environment() if codec is None else codec,
            credential_provider=credentials,
            extra_args=extra_args,
            drain=lambda: self.drain(),  # noqa: PLW0108 - as its class has it then: one for tests may take over
        )
        get_database = self._parts.database
        self.jobs = Jobs(get_database)
        """All jobs: find them, watch them, act on many of them."""
        self.lanes = Lanes(get_database)
        """Lanes: look at them, create, change and drain them."""
        self.system = System(get_database)
        """The whole queue: drain it, its retention, its limits, its locks."""
        self.schedules = Schedules(get_database)
        """Schedules: look at them, change, pause and run them."""
        self.stats = Statistics(get_database)
        """Backlog, throughput, errors and slow jobs."""
        self.job = JobDecorator(self)
        """`@app.job` or `@app.job(…)` makes a function a handler; the settings are those of `JobSettings`."""
        self.sync = SyncFenceline(self, self._parts)
        """The same verbs for blocking code."""

    def schedule(
        self,
        cron: str | None = None,
        *,
        kind: str | None = None,
        every: int | None = None,
        name: str | None = None,
        args: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
        misfire: Misfire = "once",
        misfire_limit: int = 10,
        windows: Sequence[Mapping[str, str]] = (),
        **options: Unpack[EnqueueOptions],
    ) -> ScheduleDecorator:
        """Enqueue jobs at fixed times: a decorator above `@app.job`, or with `kind=` a plain call.

            @app.schedule("0 3 * * *", timezone="Europe/Berlin")
            @app.job
            async def report() -> None: ...

        Give `cron` or `every` (seconds). `name` defaults to the kind; `args` and further options are those of its jobs.
        `misfire`, `misfire_limit` and `windows` are explained at `ScheduleSettings`. The schedule is registered when a
        worker of the app starts. Settings of operators override these. Raises InvalidSchedule.
        """
        settings: ScheduleSettings = {
            "cron": cron, "every": every, "args": args, "timezone": timezone, "misfire": misfire,
            "misfire_limit": misfire_limit, "windows": windows, "options": options,
        }  # fmt: skip
        if kind is not None:
            self._parts.declared_schedules.add(name or kind, {**settings, "kind": kind})
        return ScheduleDecorator(self._parts.declared_schedules, name, settings)

    def on_startup(self, function: HookT) -> HookT:
        """Run a function, async or not, once per worker process before it claims. If it raises, the process ends."""
        self._parts.startup_hooks.append(function)
        return function

    def on_shutdown(self, function: HookT) -> HookT:
        """Run a function, async or not, once per worker process after its last job; the last registered first."""
        self._parts.shutdown_hooks.append(function)
        return function

    def middleware(self, function: MiddlewareT) -> MiddlewareT:
        """Run a function around handlers; the first registered is the outermost.

            @app.middleware
            async def timed(ctx, call_next):
                started = time.monotonic()
                try:
                    return await call_next()
                finally:
                    ctx.log("took", seconds=time.monotonic() - started)

        What it returns is the job's result, what it raises its failure. An `async def` is around every handler, on the
        event loop. A `def` is around `def` handlers only, inside all async ones, and in the handler's own thread: there
        thread-local things, as the connections of an ORM, are those that the handler has.
        """
        if inspect.iscoroutinefunction(function):
            self._parts.middlewares.append(function)
        elif inspect.isfunction(function):
            self._parts.blocking_middlewares.append(function)
        else:
            raise TypeError(f"@app.middleware decorates a function with (ctx, call_next), not {function!r}")
        return function

    def watch(self, **filters: Unpack[JobFilters]) -> AsyncIterator[WatchEvent]:
        """The news of all jobs that match: see `Jobs.watch`, and `Job.watch` for one."""
        return self.jobs.watch(**filters)

    @overload
    async def enqueue(
        self, kind: Handler[..., R], args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[R]: ...
    @overload
    async def enqueue(
        self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[Any]: ...
    async def enqueue(
        self, kind: str | Handler[..., Any], args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[Any]:
        """Enqueue by the kind's name, or its handler. Args are validated when the handler is known here."""
        handler = self._parts.handlers.get(kind) if isinstance(kind, str) else kind
        if handler is not None:
            return await handler.options(**options).enqueue_args({} if args is None else args)
        return await self.jobs.enqueue(str(kind), args, options)

    def group(
        self, name: str | None = None, *, tenant: str | None = None, actor: str | None = None, connection: Any = None
    ) -> Group:
        """Jobs that belong together, enqueued in one statement when the block ends. See `Group`.

        `tenant` and `actor` apply to all of them; `connection` enqueues them in your transaction.
        """
        return Group(
            self._parts.database, self._parts.handlers, name, tenant=tenant, actor=actor, connection=connection
        )

    def lock(
        self,
        namespace: str,
        id: str | int,
        *,
        tenant: str = "default",
        timeout: float | None = None,
        lease_seconds: float = 30.0,
    ) -> AbstractAsyncContextManager[HeldLock]:
        """Hold a named lock for a block of code outside handlers: the same locks as `ctx.lock` of jobs of the tenant.

            async with app.lock("edition", 42) as lock: ...

        It waits for its turn, `timeout` seconds at most (0: it must be free now), and raises LockTimeout then. The lock
        is kept alive while the block runs and this event loop turns; when the process is gone, the next has it within
        `lease_seconds`. Whoever lost it is told: by `lock.lost`, `lock.raise_if_lost()`, and LockLost at the end of the
        block. Raises LockCycle, InvalidName, InvalidOption.
        """
        block = named_block(namespace, id)
        return hold_lock(self._parts.database, block, tenant=tenant, timeout=timeout, lease_seconds=lease_seconds)

    async def migrate(self) -> "MigrationReport":
        """Bring the database's schema up to date. Harmless to repeat."""
        return await self._parts.database().migrate()

    async def run_worker(
        self,
        lanes: Sequence[str] | None = None,
        *,
        concurrency: int = 100,
        threads: int = 10,
        isolated: int = 2,
        transactions: int = 1,
        batch: int = 500,
        grace_seconds: float = 30.0,
        lease_seconds: float = 30.0,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        import_name: str | None = None,
    ) -> None:
        """Run jobs of the given lanes (default: all) in this process until cancelled.

        It runs up to `concurrency` async handlers, `threads` blocking ones, `isolated` ones in separate processes and
        `transactions` blocks of `ctx.transaction()` at a time. It claims and finishes up to `batch` jobs per statement.

        When it is cancelled, handlers have `grace_seconds` to finish. If it cannot renew its lease for `lease_seconds`,
        its jobs go to others. Jobs can be addressed to a worker by its `name` or `labels`.

        `import_name`, such as "module:attribute", tells other processes where to import the app. Isolated handlers need
        it, and so does rerunning suspects of a crash alone.

        For a separate program with a supervisor and several processes, use `fenceline worker`.
        """
        # The layers point the other way; this one call is the convenience of having it on the app.
        from fenceline.model.worker_settings import WorkerSettings  # noqa: PLC0415 - as above
        from fenceline.worker.in_process import run_worker  # noqa: PLC0415 - as above

        settings = WorkerSettings(
            lanes=None if lanes is None else tuple(lanes),
            concurrency=concurrency,
            threads=threads,
            isolated=isolated,
            transactions=transactions,
            batch=batch,
            grace_seconds=grace_seconds,
            lease_seconds=lease_seconds,
            name=name,
            labels=None if labels is None else dict(labels),
        )
        await run_worker(self, settings, import_name)

    async def drain(self) -> int:
        """Run everything that is claimable now, in this process, until nothing is; how many jobs that were.

        For tests, and for an app with `delivery="inline"`, which does it after every enqueue that it commits itself.
        """
        from fenceline.worker.inline import drain  # noqa: PLC0415 - as above

        return await drain(self)

    async def dsn(self) -> str:
        """The database in use; starts the embedded one if need be."""
        return await self._parts.source.dsn()

    async def close(self) -> None:
        """Close this event loop's connections, and leave the embedded database if it is in use."""
        await self._parts.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
