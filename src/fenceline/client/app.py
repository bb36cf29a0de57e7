"""The application object: where handlers are registered and jobs come from."""

import asyncio
import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack

from fenceline.client.caller import Caller
from fenceline.client.groups import Group
from fenceline.client.handler import Handler, HandlerSettings, JobDecorator
from fenceline.client.job_verbs import Job
from fenceline.client.options import EnqueueOptions
from fenceline.client.schedule_verbs import Schedules
from fenceline.client.schedules import Declarations, ScheduleDecorator, ScheduleSettings
from fenceline.client.stats_verbs import Statistics
from fenceline.client.sync_app import SyncFenceline
from fenceline.client.verbs import Jobs, Lanes, System
from fenceline.database.source import Source
from fenceline.errors import InvalidName
from fenceline.model.retry import Retry
from fenceline.model.schedule import Misfire

if TYPE_CHECKING:
    from fenceline.client.credentials import CredentialProvider
    from fenceline.database.migrate import MigrationReport

HookT = TypeVar("HookT", bound=Callable[[], Any])
#: `async def middleware(ctx, call_next)`: awaits `call_next()` and returns what it returned, or something else.
Middleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]
MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)
#: As `check_name` in SQL has it, so that a wrong one is told where it is written, not when a worker starts.
NAME = re.compile(r"[a-z0-9_.-]{1,64}")


class Fenceline:
    """A queue: its database, its handlers, its jobs and lanes.

    `dsn`: a PostgreSQL database, else `$FENCELINE_DSN`, else an embedded PostgreSQL in `./.fenceline/`, which migrates
    itself on first use. Connections are made when they are first needed, per event loop, at most `pool_size`.

        app = Fenceline()

        @app.job()
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
    ) -> None:
        """`tracing`: OpenTelemetry spans for enqueues and runs; None: when the program has configured an SDK.

        `credentials`: turns the `identity` of a job into temporary credentials where it runs (`fenceline.credentials`).
        """
        self.credential_provider = credentials
        self._source = Source(dsn)
        self._pool_size = pool_size
        self.tracing = tracing
        self.startup_hooks: list[Callable[[], Any]] = []
        self.shutdown_hooks: list[Callable[[], Any]] = []
        self.middlewares: list[Middleware] = []
        self._callers: dict[asyncio.AbstractEventLoop, Caller] = {}
        self.handlers: dict[str, Handler[Any, Any]] = {}
        self.jobs = Jobs(self.caller)
        self.lanes = Lanes(self.caller)
        self.system = System(self.caller)
        self.schedules = Schedules(self.caller)
        self.stats = Statistics(self.caller)
        self.declared_schedules = Declarations()
        self.sync = SyncFenceline(self)

    def job(
        self,
        *,
        kind: str | None = None,
        lane: str | None = None,
        priority: int | None = None,
        timeout: float | None = None,
        retry: Retry | None = None,
        validate: Callable[..., object] | None = None,
        on_shutdown: Literal["release", "fail"] = "release",
        isolated: bool = False,
        memory_limit_mb: int | None = None,
        aliases: Sequence[str] = (),
    ) -> JobDecorator:
        """Register a function, async or not, as the handler of a kind; the kind defaults to the function's name.

        `lane`, `priority`, `timeout` (seconds) and `retry` are defaults for its jobs; the lane that lists the kind in
        the database is stronger than `lane`. `validate` is called with the args before an enqueue and may raise
        NotFound or ValueError. `on_shutdown` says what becomes of a job whose worker is told to stop and whose handler
        does not end in time: back to the queue, or failed.

        `isolated` runs the handler in a process of its own, which is killed when it exceeds its timeout or ignores a
        cancel, and whose death harms nobody else. `memory_limit_mb` is what it may take there beyond what the process
        takes with the app loaded; an allocation over it raises MemoryError (attempt failed, code `memory_limit`).

        `aliases` are kinds that this handler was known under before: their jobs are run too.
        """
        if memory_limit_mb is not None and (not isolated or memory_limit_mb < 1):
            raise ValueError(
                "memory_limit_mb needs isolated=True and at least 1: only a process of its own has a limit"
            )
        if isinstance(aliases, str):
            raise TypeError(f"aliases={aliases!r} is one text: use a list of kinds")
        if inspect.iscoroutinefunction(validate):
            raise TypeError(f"validate={validate.__qualname__} is async: blocking code enqueues too, so use a def")
        says: dict[str, Any] = {"lane": lane, "priority": priority, "timeout": timeout}
        if retry is not None:
            says |= {"retry": retry.to_json(), "max_attempts": retry.max_attempts}
        settings = HandlerSettings(
            says={name: value for name, value in says.items() if value is not None},
            validate=validate,
            on_shutdown=on_shutdown,
            isolated=isolated,
            memory_limit_mb=memory_limit_mb,
            aliases=tuple(aliases),
        )
        return JobDecorator(self, kind, settings)

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
        """Enqueue jobs by the clock: above `@app.job()`, or with `kind=` as a call. See `ScheduleSettings`.

            @app.schedule("0 3 * * *", timezone="Europe/Berlin")
            @app.job()
            async def report() -> None: ...

        The schedule is known to the database when a worker of the app has started. Its name defaults to the kind. What
        an operator says about it there is stronger than what stands here. Raises InvalidSchedule.
        """
        settings: ScheduleSettings = {
            "cron": cron, "every": every, "args": args, "timezone": timezone, "misfire": misfire,
            "misfire_limit": misfire_limit, "windows": windows, "options": options,
        }  # fmt: skip
        if kind is not None:
            self.declared_schedules.add(name or kind, {**settings, "kind": kind})
        return ScheduleDecorator(self.declared_schedules, name, settings)

    def on_startup(self, function: HookT) -> HookT:
        """Run a function, async or not, once per worker process before it claims. If it raises, the process ends."""
        self.startup_hooks.append(function)
        return function

    def on_shutdown(self, function: HookT) -> HookT:
        """Run a function, async or not, once per worker process after its last job; the last registered first."""
        self.shutdown_hooks.append(function)
        return function

    def middleware(self, function: MiddlewareT) -> MiddlewareT:
        """Run an async function around every handler; the first registered is the outermost.

            @app.middleware
            async def timed(ctx, call_next):
                started = time.monotonic()
                try:
                    return await call_next()
                finally:
                    ctx.log("took", seconds=time.monotonic() - started)

        What it returns is the job's result, what it raises its failure.
        """
        registered: Middleware = function
        if not inspect.iscoroutinefunction(registered):
            raise TypeError(f"@app.middleware decorates an async function with (ctx, call_next), not {function!r}")
        self.middlewares.append(registered)
        return function

    async def enqueue(
        self, kind: str, args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> Job[Any]:
        """Enqueue by the kind's name. Args are validated when the handler is registered here."""
        handler = self.handlers.get(kind)
        if handler is not None:
            return await handler.options(**options).enqueue_args({} if args is None else args)
        return await self.jobs.enqueue(kind, args, options)

    def group(self, name: str | None = None, *, tenant: str | None = None, connection: Any = None) -> Group:
        """Jobs that belong together, enqueued together when the block ends. See `Group`."""
        return Group(self.caller, self.handlers, name, tenant=tenant, connection=connection)

    async def migrate(self) -> "MigrationReport":
        """Bring the database's schema up to date. Harmless to repeat."""
        return await self.caller().migrate()

    async def run_worker(
        self, lanes: Sequence[str] | None = None, *, import_name: str | None = None, **settings: Any
    ) -> None:
        """Run jobs in this process until cancelled; `settings` are those of `WorkerSettings`.

        `import_name`, as "module:attribute", is needed for isolated handlers only: their processes import the app.
        For a process of its own, with supervisor and several children, use `fenceline worker`.
        """
        # The layers point the other way; this one call is the convenience of having it on the app.
        embedded = importlib.import_module("fenceline.worker.embedded")
        module = importlib.import_module("fenceline.worker.settings")
        chosen = module.WorkerSettings(lanes=None if lanes is None else tuple(lanes), **settings)
        await embedded.run_worker(self, chosen, import_name)

    async def dsn(self) -> str:
        """The database in use; starts the embedded one if need be."""
        return await self._source.dsn()

    async def close(self) -> None:
        """Close this event loop's connections, and leave the embedded database if it is in use."""
        caller = self._callers.pop(asyncio.get_running_loop(), None)
        self._drop_ended_loops()
        if caller is not None:
            await caller.close()
        await asyncio.to_thread(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def caller(self) -> Caller:
        """The way to the database for the running event loop."""
        loop = asyncio.get_running_loop()
        caller = self._callers.get(loop)
        if caller is None:
            self._drop_ended_loops()
            caller = self._callers[loop] = self.make_caller()
        return caller

    def _drop_ended_loops(self) -> None:
        # Connections of an event loop that has ended without close() can only be dropped.
        self._callers = {loop: caller for loop, caller in self._callers.items() if not loop.is_closed()}

    def leave_database(self) -> None:
        """Leave the embedded database if it is in use, unless an event loop still uses it."""
        if all(loop.is_closed() for loop in self._callers):
            self._source.close()

    def make_caller(self, pool_size: int | None = None) -> Caller:
        return Caller(self._source, pool_size or self._pool_size, tracing=self.tracing)

    def register(self, handler: Handler[Any, Any]) -> None:
        kinds = (handler.kind, *handler.aliases)
        for kind in kinds:
            if not NAME.fullmatch(kind):
                raise InvalidName(
                    f"kind {kind!r} of {handler.function.__qualname__} is not a valid name: use 1 to 64 of a-z, 0-9, "
                    '"_", "." and "-", and give the handler a kind= if its function is called otherwise'
                )
            if kind in self.handlers:
                raise ValueError(
                    f"kind {kind!r} has two handlers: {self.handlers[kind].function.__qualname__} and "
                    f"{handler.function.__qualname__}; give one of them another kind="
                )
        self.handlers |= dict.fromkeys(kinds, handler)
