"""`@app.job`: makes a function the handler of a kind."""

import inspect
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Required, TypedDict, TypeVar, Unpack, overload

from fenceline.client.app_parts import app_parts
from fenceline.client.batch_handler import WAIT_SECONDS, BatchDecorator, check_batch
from fenceline.client.handler import Handler
from fenceline.client.handler_parts import Batch, HandlerSettings
from fenceline.model.retry import Retry, as_settings

if TYPE_CHECKING:
    from fenceline.client.app import App
    from fenceline.context.context import Context
    from fenceline.context.sync_context import SyncContext

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

PLAIN = HandlerSettings()
#: The settings that stay with the handler, under the same names.
OWN_SETTINGS = (
    "validate", "on_shutdown", "isolated", "memory_limit_mb", "aliases", "identities", "extra_args",
)  # fmt: skip


class JobSettings(TypedDict, total=False):
    """The settings of `@app.job(…)`. All are optional."""

    kind: str | None
    """The name its jobs are enqueued under. Default: the name of the function."""
    lane: str | None
    """The lane of its jobs. A lane that lists the kind in the database overrides it, and so does an enqueue."""
    priority: int | None
    """The priority of its jobs, unless the enqueue sets one."""
    timeout: float | None
    """Seconds an attempt may take before it fails with code `timeout`. Default: no limit."""
    retry: Retry | int | None
    """The retry policy, or only the number of attempts. Default: `Retry()`, three attempts."""
    validate: Callable[..., object] | None
    """Called with the args before an enqueue. If it raises NotFound or ValueError, nothing is enqueued."""
    on_shutdown: Literal["release", "fail"]
    """If its worker must stop before it ends: return the job to the queue (the default), or fail it."""
    isolated: bool
    """Run it in a separate process, which is killed if it exceeds its timeout or ignores a cancel."""
    memory_limit_mb: int | None
    """With `isolated`: memory it may use on top of the loaded app. Using more fails with code `memory_limit`."""
    aliases: Sequence[str]
    """Former names of the kind: their jobs run too."""
    needs_approval: bool
    """Its jobs always wait until someone other than their creator approves them."""
    identities: Mapping[str, Sequence[str]] | None
    """Who may name which `identity`: `{"tenant:acme": ["billing"], "role:operator": ["*"]}`. None: no restriction."""
    extra_args: Literal["refuse", "ignore"]
    """Args this handler does not know: leave the job to workers of another version, or run it without them."""


class BatchSettings(JobSettings, total=False):
    """As `JobSettings`, for a handler that takes many jobs at a time (docs/guides/batch.md)."""

    batch: Required[int]
    """The most jobs per call of the handler, which takes a `list[BatchItem[…]]`."""
    batch_wait: float
    """Seconds the first job waits for others; a full batch does not wait. Default: 0.1."""


class TakesContext(Protocol[P, R_co]):
    """An `async def` whose first parameter is the context, and what follows it. Not `Callable[Concatenate[…]]`, which
    forgets that the parameter is called `ctx`: any first parameter of type Any would pass for a context, and where Any
    occurs in a signature, mypy takes the first overload that fits only if all that fit mean the same function.
    """

    def __call__(self, ctx: "Context", *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...


class TakesSyncContext(Protocol[P, R_co]):
    """As `TakesContext`, a `def`."""

    def __call__(self, ctx: "SyncContext", *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class JobDecorator:
    """`@app.job`, as it is or with settings (`JobSettings`): `@app.job(lane="interactive", retry=5)`.

    `ingest.enqueue(...)` takes what the function takes, except for the context, which is its first parameter if it has
    one: `ctx: Context`, or in a `def` `ctx: SyncContext`.
    """

    def __init__(self, app: "App", kind: str | None = None, settings: HandlerSettings = PLAIN) -> None:
        self._app = app
        self._kind = kind
        self._settings = settings

    # A type checker takes the first that fits. Typing can leave out a first parameter, but not a keyword.
    @overload
    def __call__(self, function: TakesContext[P, R], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: TakesSyncContext[P, R], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, /, **settings: Unpack[BatchSettings]) -> BatchDecorator: ...
    @overload
    def __call__(self, /, **settings: Unpack[JobSettings]) -> "JobDecorator": ...
    def __call__(self, function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
        """Register a function, async or not, as the handler of a kind; or choose settings for the function to come."""
        if function is None:
            chosen = _checked(settings)
            decorator = JobDecorator(self._app, settings.get("kind"), chosen)
            return decorator if chosen.batch is None else BatchDecorator(decorator._register)
        if settings or not inspect.isroutine(function):
            raise TypeError(f"@app.job decorates a function, not {function!r}; settings are given by name")
        return self._register(function, Handler, inspect.currentframe())

    def _register(self, function: Callable[..., Any], handler_of: Any, frame: FrameType | None) -> Any:
        """`handler_of`: the class of the handler; `frame`: the one that was called where the function is decorated."""
        handler: Handler[Any, Any] = handler_of(
            self._app,
            function,
            kind=self._kind or function.__name__,
            settings=self._settings,
            local_names=_local_names(function, frame),
        )
        app_parts(self._app).register(handler)
        return handler


def _checked(settings: Mapping[str, Any]) -> HandlerSettings:
    known = BatchSettings.__annotations__
    if unknown := sorted(settings.keys() - known.keys()):
        raise TypeError(f"@app.job has no setting {', '.join(unknown)}: use {', '.join(known)}")
    own = {name: settings[name] for name in OWN_SETTINGS if settings.get(name) is not None}
    chosen = HandlerSettings(kind_settings=_kind_settings(settings), **own)
    if chosen.memory_limit_mb is not None and (not chosen.isolated or chosen.memory_limit_mb < 1):
        raise ValueError("memory_limit_mb needs isolated=True and at least 1: only a separate process can have a limit")
    if isinstance(chosen.aliases, str):
        raise TypeError(f"aliases={chosen.aliases!r} is a single string: use a list of kinds")
    if inspect.iscoroutinefunction(chosen.validate):
        raise TypeError(f"validate={chosen.validate.__qualname__} is async: blocking code enqueues too, so use a def")
    check_extra_args(chosen.extra_args)
    if "batch" in settings:
        wait_seconds = settings.get("batch_wait", WAIT_SECONDS)
        check_batch(settings["batch"], wait_seconds, isolated=chosen.isolated, validate=chosen.validate)
        chosen.batch = Batch(settings["batch"], float(wait_seconds))
    elif "batch_wait" in settings:
        raise TypeError("batch_wait= needs batch=: how many jobs to wait for")
    return chosen


def check_extra_args(choice: str | None) -> None:
    """Raises ValueError."""
    if choice not in (None, "refuse", "ignore"):
        raise ValueError(f"extra_args={choice!r} is unknown: use refuse or ignore")


def _kind_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {name: settings.get(name) for name in ("lane", "priority", "timeout")}
    retry = settings.get("retry")
    if retry is not None:
        chosen |= as_settings(retry)
    if settings.get("needs_approval"):
        chosen["needs_approval"] = True
    return {name: value for name, value in chosen.items() if value is not None}


def _local_names(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any] | None:
    """The local variables, where a function is decorated, that its annotations name. With `from __future__ import
    annotations` these are strings, and a class defined inside a function is found nowhere else.
    """
    texts = [hint for hint in getattr(function, "__annotations__", {}).values() if isinstance(hint, str)]
    if not texts or frame is None or frame.f_back is None:
        return None
    around = frame.f_back.f_locals
    return {name: around[name] for name in re.findall(r"\w+", " ".join(texts)) if name in around}
