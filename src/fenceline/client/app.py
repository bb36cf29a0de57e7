"""The application object: where handlers are registered and jobs come from.

What runs jobs builds on this, so it cannot be in here: `fenceline.app.Fenceline` is an `App` that also runs workers.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack

from fenceline.backends.chosen import choose_delivery
from fenceline.client.app_parts import AppParts
from fenceline.client.app_verbs import AppVerbs
from fenceline.client.codec import codec_from_environment
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.job_decorator import JobDecorator, check_extra_args
from fenceline.client.job_filters import JobFilters
from fenceline.client.schedule_decorator import ScheduleDecorator, ScheduleSettings
from fenceline.client.sync_app import SyncFenceline
from fenceline.database.dsn import Source
from fenceline.model.actor import default_actor
from fenceline.model.records import WatchEvent
from fenceline.model.schedule import Misfire

if TYPE_CHECKING:
    from fenceline.backends.contract import BackendFactory
    from fenceline.client.credential_providers import CredentialProvider
    from fenceline.database.migrate import MigrationReport
    from fenceline.model.sealed import Codec

HookT = TypeVar("HookT", bound=Callable[[], Any])
#: `async def middleware(ctx, call_next)`: awaits `call_next()` and returns what it returned, or something else.
Middleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]
#: `def middleware(ctx, call_next)`: the same for `def` handlers, in their own thread.
BlockingMiddleware = Callable[[Any, Callable[[], Any]], Any]
MiddlewareT = TypeVar("MiddlewareT", bound=BlockingMiddleware)


class App(AppVerbs):
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
        """`tracing`: OpenTelemetry spans for enqueues and runs. None: only if the program has configured an SDK.

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
        parts = AppParts(
            source=Source(dsn),
            pool_size=pool_size,
            delivery=choose_delivery(delivery),
            actor=actor or default_actor(),
            tracing=tracing,
            codec=codec_from_environment() if codec is None else codec,
            credential_provider=credentials,
            extra_args=extra_args,
            drain=lambda: self.drain(),  # noqa: PLW0108 - looked up when it is called: tests swap the class
        )
        super().__init__(parts)
        self.job = JobDecorator(self)
        """`@app.job` or `@app.job(…)` makes a function a handler; the settings are those of `JobSettings`."""
        self.sync = SyncFenceline(self, parts)
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
        worker of the app starts. Operators can override these settings. Raises InvalidSchedule.
        """
        settings: ScheduleSettings = {
            "cron": cron, "every": every, "args": args, "timezone": timezone, "misfire": misfire,
            "misfire_limit": misfire_limit, "windows": windows, "options": options,
        }  # fmt: skip
        decorator = ScheduleDecorator(self._parts.declared_schedules, name, settings)
        if kind is not None:
            self._parts.declared_schedules.add(name or kind, {**settings, "kind": kind})
        return decorator

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

        What it returns is the job's result, what it raises its failure. An `async def` runs around every handler, on
        the event loop. A `def` runs around `def` handlers only, inside all async ones and in the handler's own thread,
        so it shares thread-local things such as the connections of an ORM with the handler.
        """
        if inspect.iscoroutinefunction(function):
            self._parts.middlewares.append(function)
        elif inspect.isfunction(function):
            self._parts.blocking_middlewares.append(function)
        else:
            raise TypeError(f"@app.middleware decorates a function with (ctx, call_next), not {function!r}")
        return function

    def watch(self, **filters: Unpack[JobFilters]) -> AsyncIterator[WatchEvent]:
        """Live events of all jobs that match: see `Jobs.watch`, and `Job.watch` for one job."""
        return self.jobs.watch(**filters)

    async def migrate(self) -> "MigrationReport":
        """Bring the database's schema up to date. Harmless to repeat."""
        return await self._parts.database().migrate()

    async def drain(self) -> int:
        """Run claimable jobs. Only `fenceline.Fenceline` can: an app that merely enqueues runs nothing."""
        return 0

    async def dsn(self) -> str:
        """The database in use; starts the embedded one if need be."""
        return await self._parts.source.dsn()

    async def close(self) -> None:
        """Close this event loop's connections, and leave the embedded database if it is in use."""
        await self._parts.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
