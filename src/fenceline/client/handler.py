"""Handlers as `@app.job` registers them: they run a function, and enqueue its jobs."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from fenceline.client.app_parts import app_parts
from fenceline.client.arguments import Arguments
from fenceline.client.batch_arguments import BatchArguments
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.enqueuer import Enqueuer
from fenceline.client.finalizer import Finalizer
from fenceline.client.handler_parts import HandlerParts, HandlerSettings
from fenceline.client.job import Job
from fenceline.client.sync_enqueuer import SyncEnqueuer

if TYPE_CHECKING:
    from fenceline.client.app import App

P = ParamSpec("P")
R = TypeVar("R")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Handler(Generic[P, R]):
    """A registered handler: it can still be called like the function, and enqueues its jobs."""

    def __init__(
        self,
        app: "App",
        function: Callable[..., Any],
        *,
        kind: str,
        settings: HandlerSettings,
        local_names: Mapping[str, Any] | None,
    ) -> None:
        self.kind = kind
        extra_args = settings.extra_args or app_parts(app).extra_args
        arguments_of = Arguments if settings.batch is None else BatchArguments
        arguments = arguments_of(kind, function, local_names, ignores_extra=extra_args == "ignore")
        self._parts = HandlerParts(kind=kind, function=function, arguments=arguments, **vars(settings))
        self._app = app
        self.__doc__ = function.__doc__
        self._plain = self.options()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without the queue, as in tests. If it takes a context, pass your own."""
        return self._parts.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Handler {self.kind}>"

    def finalizer(self, function: FunctionT) -> FunctionT:
        """Run a function when a job of this kind succeeds, in the transaction that ends it: both happen, or neither.

            @ingest.finalizer
            async def publish(conn, job, result):
                await conn.execute("update document set rows = $1 where job = $2", result["rows"], job.id)

        It gets what its parameters name: conn (or connection), job, result, args, ctx. `async def` gets an asyncpg
        connection, `def` one of psycopg. What it raises fails the attempt.
        """
        if self._parts.finalizer is not None:
            raise ValueError(f"kind {self.kind!r} has a finalizer already")
        self._parts.finalizer = Finalizer(self.kind, function)
        return function

    def snapshot(self, function: FunctionT) -> FunctionT:
        """Register a function that returns the current configuration of this kind, as JSON, for a job's args.

        It is called at enqueue, to fill `snapshot`, and before a job with `requires_hash` runs: if the configuration
        has changed since it was planned, the job fails (code `plan_hash_mismatch`) without running.
        """
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"snapshot {function.__qualname__} is async: blocking code enqueues too, so use a def")
        self._parts.snapshot_provider = function
        return function

    def options(self, **options: Unpack[EnqueueOptions]) -> "OptionedEnqueuer[P, R]":
        """The enqueue verbs, with options for their jobs."""
        return OptionedEnqueuer(self._app, self._parts, options)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue one job with the handler's arguments, and return its handle. Raises InvalidArgs."""
        return await self._plain.enqueue(*args, **kwargs)

    async def enqueue_many(
        self, many: Iterable[Mapping[str, Any]], each: Iterable[EnqueueOptions] | None = None
    ) -> list[Job[R]]:
        """Enqueue one job per mapping of args, in one statement; `each` has options for each of them."""
        return await self._plain.enqueue_many(many, each)

    @property
    def sync(self) -> SyncEnqueuer[P, R]:
        """The same verbs for blocking code."""
        return self._plain.sync


class OptionedEnqueuer(Enqueuer[P, R]):
    """Enqueue verbs with options, async here and blocking under `.sync`."""

    __slots__ = ("_app",)

    def __init__(self, app: "App", parts: HandlerParts, options: EnqueueOptions) -> None:
        super().__init__(app_parts(app).database, parts, options)
        self._app = app

    @property
    def sync(self) -> SyncEnqueuer[P, R]:
        """The same verbs, with these options, for blocking code."""
        return SyncEnqueuer(app_parts(self._app).sync_database, self._parts, self._options)
