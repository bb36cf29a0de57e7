"""The application object: where handlers are registered and jobs come from."""

import asyncio
import importlib
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from fenceline.client.arguments import Arguments
from fenceline.client.caller import Caller
from fenceline.client.finalizer import Finalizer
from fenceline.client.groups import Group
from fenceline.client.options import EnqueueOptions
from fenceline.client.schedule_verbs import Schedules
from fenceline.client.schedules import Declarations, ScheduleDecorator, ScheduleSettings
from fenceline.client.stats_verbs import Statistics
from fenceline.client.sync_caller import SyncCaller
from fenceline.client.sync_groups import SyncGroup
from fenceline.client.sync_schedule_verbs import SyncSchedules
from fenceline.client.sync_stats_verbs import SyncStatistics
from fenceline.client.sync_verbs import SyncEnqueuer, SyncJob, SyncJobs, SyncLanes, SyncSystem
from fenceline.client.verbs import Enqueuer, Job, Jobs, Lanes, System
from fenceline.database.source import Source
from fenceline.errors import InvalidName
from fenceline.model.retry import Retry
from fenceline.model.schedule import Misfire

if TYPE_CHECKING:
    from fenceline.client.credentials import CredentialProvider
    from fenceline.database.migrate import MigrationReport

P = ParamSpec("P")
R = TypeVar("R")
HookT = TypeVar("HookT", bound=Callable[[], Any])
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
#: `async def middleware(ctx, call_next)`: awaits `call_next()` and returns what it returned, or something else.
Middleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]
MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)
#: As `check_name` in SQL has it, so that a wrong one is told where it is written, not when a worker starts.
NAME = re.compile(r"[a-z0-9_.-]{1,64}")


class Handler(Generic[P, R]):
    """A registered handler: still a function, and the place its jobs are enqueued from."""

    def __init__(
        self,
        app: "Fenceline",
        function: Callable[..., Any],
        *,
        kind: str,
        says: Mapping[str, Any],
        validate: Callable[..., object] | None,
        on_shutdown: Literal["release", "fail"],
        isolated: bool,
        memory_limit_mb: int | None,
        aliases: Sequence[str] = (),
        nearby: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.aliases = tuple(aliases)
        self.own_finalizer: Finalizer | None = None
        self.snapshot_provider: Callable[..., Any] | None = None
        self.on_shutdown = on_shutdown
        self.isolated = isolated
        self.memory_limit_mb = memory_limit_mb
        self.function = function
        self.arguments = Arguments(kind, function, nearby)
        #: What the decorator says about the kind, for the database: lane, priority, max_attempts, retry, timeout.
        self.says = dict(says)
        self._app = app
        self._validate = validate
        self.__doc__ = function.__doc__
        self._plain = self.options()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without the queue, with a context of your own if it takes one: in tests, say."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Handler {self.kind}>"

    def finalizer(self, function: FunctionT) -> FunctionT:
        """Run a function when a job of this kind succeeds, in the transaction that ends it: both happen, or neither.

            @ingest.finalizer
            async def publish(conn, job, result):
                await conn.execute("update document set rows = $1 where job = $2", result["rows"], job.id)

        It is given what its parameters name: conn (or connection), job, result, args, ctx. `async def` gets an asyncpg
        connection, `def` one of psycopg. What it raises fails the attempt.
        """
        if self.own_finalizer is not None:
            raise ValueError(f"kind {self.kind!r} has a finalizer already")
        self.own_finalizer = Finalizer(self.kind, function)
        return function

    def snapshot(self, function: FunctionT) -> FunctionT:
        """Register what tells the current configuration of this kind, as JSON, from a job's args.

        It is called at enqueue, where it fills `snapshot`, and before a job with `requires_hash` runs: if the
        configuration is not the one that was planned any more, the job fails (code `plan_hash_mismatch`) and nothing
        runs.
        """
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"snapshot {function.__qualname__} is async: blocking code enqueues too, so use a def")
        self.snapshot_provider = function
        return function

    def current_snapshot(self, args: Mapping[str, Any]) -> Any:
        """The current configuration for a job with these args."""
        if self.snapshot_provider is None:
            raise TypeError(f"kind {self.kind!r} has no snapshot provider")
        return self.snapshot_provider(**args)

    def encode_many_args(self, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """Args as JSON text, each validated as an enqueue would. Raises InvalidArgs."""
        return self.arguments.encode_many(many, self._validate)

    def options(self, **options: Unpack[EnqueueOptions]) -> "OptionedEnqueuer[P, R]":
        """The enqueue verbs with options for the jobs they make."""
        return OptionedEnqueuer(
            self._app,
            self.arguments,
            defaults=self.defaults,
            validate=self._validate,
            snapshot_provider=lambda: self.snapshot_provider,
            options=options,
        )

    @property
    def defaults(self) -> str | None:
        """What the decorator says, as JSON text for an enqueue."""
        return json.dumps(self.says) if self.says else None

    @property
    def declaration(self) -> dict[str, Any]:
        """What the database should know of the kind: what the decorator says, and that results need a finalizer."""
        return {**self.says, "finalizer": True} if self.own_finalizer is not None else self.says

    @property
    def has_validate(self) -> bool:
        """Whether checking args runs code of the application's own, which may take its time."""
        return self._validate is not None

    def encode_args(self, args: Mapping[str, Any]) -> str:
        """Args as JSON text, checked as an enqueue checks them. Raises InvalidArgs, and whatever `validate=` raises."""
        values = self.arguments.validate(args)
        if self._validate is not None:
            self._validate(**values)
        return self.arguments.dump(values)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue one job; the arguments are the handler's own. See `Enqueuer.enqueue`."""
        return await self._plain.enqueue(*args, **kwargs)

    async def enqueue_many(self, many: Iterable[Mapping[str, Any]]) -> list[Job[R]]:
        """Enqueue a job per mapping of args in one statement. See `Enqueuer.enqueue_many`."""
        return await self._plain.enqueue_many(many)

    @property
    def sync(self) -> SyncEnqueuer[P, R]:
        """The same verbs for blocking code."""
        return self._plain.sync


class OptionedEnqueuer(Enqueuer[P, R]):
    """Enqueue verbs with options, async here and blocking under `.sync`."""

    __slots__ = ("_app",)

    def __init__(
        self,
        app: "Fenceline",
        arguments: Arguments,
        *,
        defaults: str | None,
        validate: Callable[..., object] | None,
        snapshot_provider: Callable[[], Callable[..., Any] | None],
        options: EnqueueOptions,
    ) -> None:
        super().__init__(
            app.caller,
            arguments,
            defaults=defaults,
            validate=validate,
            snapshot_provider=snapshot_provider,
            options=options,
        )
        self._app = app

    @property
    def sync(self) -> SyncEnqueuer[P, R]:
        return SyncEnqueuer(
            self._app.sync.caller,
            self._arguments,
            defaults=self._defaults,
            validate=self._validate,
            snapshot_provider=self._snapshot_provider,
            options=self._options,
        )


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
    ) -> "JobDecorator":
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
        says = {name: value for name, value in says.items() if value is not None}
        return JobDecorator(
            self,
            kind=kind,
            says=says,
            validate=validate,
            on_shutdown=on_shutdown,
            isolated=isolated,
            memory_limit_mb=memory_limit_mb,
            aliases=aliases,
        )

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


class JobDecorator:
    """What `@app.job(...)` is until it meets its function."""

    def __init__(
        self,
        app: Fenceline,
        *,
        kind: str | None,
        says: Mapping[str, Any],
        validate: Callable[..., object] | None,
        on_shutdown: Literal["release", "fail"],
        isolated: bool,
        memory_limit_mb: int | None,
        aliases: Sequence[str],
    ) -> None:
        self._app = app
        self._kind = kind
        self._aliases = aliases
        self._says = says
        self._validate = validate
        self._on_shutdown: Literal["release", "fail"] = on_shutdown
        self._isolated = isolated
        self._memory_limit_mb = memory_limit_mb

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Handler[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Handler[Any, Any]:
        if not inspect.isroutine(function):
            raise TypeError(f"@app.job() decorates a function, not {function!r}: mind the parentheses")
        handler: Handler[Any, Any] = Handler(
            self._app,
            function,
            kind=self._kind or function.__name__,
            says=self._says,
            validate=self._validate,
            on_shutdown=self._on_shutdown,
            isolated=self._isolated,
            memory_limit_mb=self._memory_limit_mb,
            aliases=self._aliases,
            nearby=_nearby(function, inspect.currentframe()),
        )
        self._app.register(handler)
        return handler


def _nearby(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any] | None:
    """What the annotations of a function name among the locals of where it is decorated: with `from __future__ import
    annotations` they are texts, and a class that is defined in a function is found nowhere else.
    """
    texts = [hint for hint in getattr(function, "__annotations__", {}).values() if isinstance(hint, str)]
    if not texts or frame is None or frame.f_back is None:
        return None
    around = frame.f_back.f_locals
    return {name: around[name] for name in re.findall(r"\w+", " ".join(texts)) if name in around}


class SyncFenceline:
    """The verbs of `Fenceline` for blocking code: `app.sync`."""

    def __init__(self, app: Fenceline) -> None:
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
