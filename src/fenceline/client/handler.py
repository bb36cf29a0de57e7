"""Handlers as `@app.job(...)` registers them: functions, and the places their jobs are enqueued from."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, Unpack, overload

from fenceline.client.arguments import Arguments
from fenceline.client.finalizer import Finalizer
from fenceline.client.job_verbs import Enqueuer, Job
from fenceline.client.options import EnqueueOptions
from fenceline.client.sync_job_verbs import SyncEnqueuer

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline

P = ParamSpec("P")
R = TypeVar("R")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSettings:
    """What `@app.job(...)` says: `says` to the database, the rest to whoever enqueues or runs a job of the kind."""

    says: Mapping[str, Any]
    validate: Callable[..., object] | None
    on_shutdown: Literal["release", "fail"]
    isolated: bool
    memory_limit_mb: int | None
    aliases: tuple[str, ...]


class Handler(Generic[P, R]):
    """A registered handler: still a function, and the place its jobs are enqueued from."""

    def __init__(
        self,
        app: "Fenceline",
        function: Callable[..., Any],
        *,
        kind: str,
        settings: HandlerSettings,
        nearby: Mapping[str, Any] | None,
    ) -> None:
        self.kind = kind
        self.aliases = settings.aliases
        self.own_finalizer: Finalizer | None = None
        self.snapshot_provider: Callable[..., Any] | None = None
        self.on_shutdown = settings.on_shutdown
        self.isolated = settings.isolated
        self.memory_limit_mb = settings.memory_limit_mb
        self.function = function
        self.arguments = Arguments(kind, function, nearby)
        #: What the decorator says about the kind, for the database: lane, priority, max_attempts, retry, timeout.
        self.says = dict(settings.says)
        self._app = app
        self._validate = settings.validate
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


class JobDecorator:
    """What `@app.job(...)` is until it meets its function."""

    def __init__(self, app: "Fenceline", kind: str | None, settings: HandlerSettings) -> None:
        self._app = app
        self._kind = kind
        self._settings = settings

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
            settings=self._settings,
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
