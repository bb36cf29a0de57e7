"""`@app.job(batch=…)`: makes a function the handler of a kind, called with many jobs at a time."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from fenceline.client.arguments import CONTEXT
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.handler import Handler
from fenceline.client.job import Job

if TYPE_CHECKING:
    from fenceline.context.batch_context import BatchContext, SyncBatchContext
    from fenceline.context.batch_item import BatchItem

T = TypeVar("T")

#: The default: long enough for a flood of jobs to gather, too short to be noticed.
WAIT_SECONDS = 0.1
#: All jobs of a batch are held, recorded and ended together.
MAX_SIZE = 1000
MAX_WAIT_SECONDS = 60.0


class BatchHandler(Handler[[T], Any]):
    """A handler that is called with many jobs at a time; they are enqueued one by one, like those of any other kind."""

    async def enqueue_many(
        self, many: Iterable[T | Mapping[str, Any]], each: Iterable[EnqueueOptions] | None = None
    ) -> list[Job[Any]]:
        """Enqueue a job per value of the items' type, or per mapping of its fields, in one statement."""
        return await self._plain.enqueue_many(many, each)  # type: ignore[arg-type]  # its arguments take both

    def finalizer(self, function: Any) -> NoReturn:
        """Not for batches: write in `async with ctx.transaction()`. Raises TypeError."""
        raise TypeError(
            f"kind {self.kind!r} is run in batches and can have no finalizer ({function.__qualname__}): write in "
            "`async with ctx.transaction()`, which ends all jobs of the batch"
        )

    def snapshot(self, function: Any) -> NoReturn:
        """Not for batches: give it to the enqueue, `.options(snapshot=…)`. Raises TypeError."""
        raise TypeError(
            f"kind {self.kind!r} is run in batches and can have no snapshot ({function.__qualname__}): give it to the "
            "enqueue, .options(snapshot=…)"
        )


class BatchDecorator:
    """`@app.job(batch=…)`: decorates a function that takes a list of `BatchItem`, and first `ctx` if it wants one."""

    def __init__(self, register: Callable[..., Any]) -> None:
        self._register = register

    @overload
    def __call__(
        self, function: "Callable[[BatchContext, list[BatchItem[T]]], Awaitable[None]]", /
    ) -> BatchHandler[T]: ...
    @overload
    def __call__(self, function: "Callable[[SyncBatchContext, list[BatchItem[T]]], None]", /) -> BatchHandler[T]: ...
    @overload
    def __call__(self, function: "Callable[[list[BatchItem[T]]], Awaitable[None]]", /) -> BatchHandler[T]: ...
    @overload
    def __call__(self, function: "Callable[[list[BatchItem[T]]], None]", /) -> BatchHandler[T]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Register a function, async or not, as the handler of a kind."""
        _check_context(function)
        return self._register(function, BatchHandler, inspect.currentframe())


def check_batch(size: int, wait_seconds: float, *, isolated: bool, validate: Any) -> None:
    """Raises ValueError, or TypeError for what cannot be done for many jobs at a time."""
    if not 1 <= size <= MAX_SIZE or size != int(size):
        raise ValueError(f"batch={size!r} is out of range: use 1 to {MAX_SIZE} jobs")
    if not 0 <= wait_seconds <= MAX_WAIT_SECONDS:
        raise ValueError(f"batch_wait={wait_seconds!r} is out of range: use 0 to {MAX_WAIT_SECONDS:g} seconds")
    if isolated:
        raise TypeError(
            "batch= and isolated=True exclude each other: a process of its own is for one job. A job of a batch that "
            "may have killed its process is run in one of its own anyway"
        )
    if validate is not None:
        raise TypeError("batch= and validate= exclude each other: let the type of the items check itself")


def _check_context(function: Callable[..., Any]) -> None:
    """The context of one job has steps, waits and locks, which a batch cannot have."""
    parameter = inspect.signature(function).parameters.get(CONTEXT)
    hint = None if parameter is None else parameter.annotation
    named = hint if isinstance(hint, str) else getattr(hint, "__name__", "")
    if named.rpartition(".")[2] in {"Context", "SyncContext"}:
        raise TypeError(
            f"batch handler {function.__qualname__} takes {CONTEXT}: {named}, the context of one job: use "
            f"{'BatchContext' if inspect.iscoroutinefunction(function) else 'SyncBatchContext'}. Steps, waits and "
            "locks are for handlers of one job at a time"
        )
