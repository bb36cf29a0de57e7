"""How one kind is run, worked out once: where, whether inline, and how args and context reach the function."""

import dis
import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from fenceline.client.app import App, BlockingMiddleware, Middleware
from fenceline.client.app_parts import app_parts
from fenceline.client.batch_arguments import BatchArguments
from fenceline.client.enqueue_tracing import is_on
from fenceline.client.handler import Handler
from fenceline.client.handler_parts import handler_parts
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.batch_context import batch_context, behind
from fenceline.context.batch_item import BatchItem
from fenceline.context.batch_part import BatchPart
from fenceline.context.context import Context
from fenceline.context.failure import describe
from fenceline.context.handler_tracing import in_span
from fenceline.context.session import Session
from fenceline.context.sync_context import SyncContext, Wait
from fenceline.model.outcome import Mode, Outcome

AWAITING = frozenset({"GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH", "SEND", "YIELD_VALUE"})


class HandlerPlan:
    def __init__(
        self,
        handler: Handler[Any, Any],
        middlewares: Sequence[Middleware] = (),
        blocking_middlewares: Sequence[BlockingMiddleware] = (),
        *,
        isolates: bool = True,
    ) -> None:
        """`isolates`: False runs isolated handlers where the others run."""
        parts = handler_parts(handler)
        self.handler = handler
        self._function = parts.function
        self.batch = parts.batch
        self._has_context = "ctx" in inspect.signature(parts.function).parameters
        self.takes_context = self._has_context and self.batch is None  # that of one job
        self.finalizer = parts.finalizer
        self._decode = parts.arguments.decode
        self._middlewares = tuple(middlewares)
        self._blocking_middlewares = tuple(blocking_middlewares)
        self.encode_result = parts.arguments.encode_result
        self.memory_limit_mb = parts.memory_limit_mb
        self.is_async = inspect.iscoroutinefunction(parts.function)
        self.mode = Mode.ISOLATED if parts.isolated and isolates else Mode.LOOP if self.is_async else Mode.THREAD
        if self.batch is not None:
            self.mode = Mode.BATCH
        self.has_middleware = bool(middlewares)
        self.inline = (
            self.mode is Mode.LOOP and not self.has_middleware and self.finalizer is None and not awaits(parts.function)
        )

    def call(self, attempt: Attempt, context: Context | SyncContext) -> Any:
        """Call the function: its value, or its coroutine if it is async."""
        if self.batch is not None:
            return self._call_alone(*behind(context))
        args = self._decode(attempt.args)
        if self.takes_context:
            return self._function(**args, ctx=context)
        return self._function(**args)

    def part_of(self, session: Session) -> BatchPart:
        """A job for `call_together`. Raises InvalidArgs."""
        return BatchPart(session, self._decode(session.attempt.args), self.encode_result)

    async def call_together(self, parts: Sequence[BatchPart]) -> None:
        """Call the function of a kind that takes many jobs at a time."""
        self._must_be_none(await self._function(**self._given(parts, None)))

    def call_together_blocking(self, parts: Sequence[BatchPart], wait: Wait | None) -> None:
        self._must_be_none(self._function(**self._given(parts, wait)))

    def _given(self, parts: Sequence[BatchPart], wait: Wait | None) -> dict[str, Any]:
        arguments = handler_parts(self.handler).arguments
        assert isinstance(arguments, BatchArguments)  # noqa: S101 - of a kind that takes many jobs
        given: dict[str, Any] = {arguments.parameter: [BatchItem[Any](part) for part in parts]}
        return {**given, "ctx": batch_context(parts, wait)} if self._has_context else given

    def _must_be_none(self, value: Any) -> None:
        if inspect.iscoroutine(value):
            value.close()
        if value is not None:
            raise TypeError(
                f"the batch handler of kind {self.handler.kind!r} returned a {type(value).__name__}: it returns "
                "nothing, item.succeed(result) gives a job its result"
            )

    def _call_alone(self, session: Session, wait: Wait | None) -> Any:
        """Run a batch of one job like a job of any other kind: returns its value, or raises what it failed with."""
        part = self.part_of(session)
        if self.is_async:
            return self._await_alone(part)
        try:
            self.call_together_blocking([part], wait)
        except Exception:
            if not part.is_decided:
                raise
        return part.take()

    async def _await_alone(self, part: BatchPart) -> Any:
        try:
            await self.call_together([part])
        except Exception:
            if not part.is_decided:
                raise
        return part.take()

    def call_blocking(self, attempt: Attempt, context: SyncContext) -> Any:
        """Call a `def` handler inside the middleware that runs in its thread."""
        return self.around_blocking(context, partial(self._called, attempt, context))

    def around_blocking(self, context: SyncContext, call: Callable[[], Any]) -> Any:
        for middleware in reversed(self._blocking_middlewares):
            call = partial(middleware, context, _next_blocking(call))
        return call()

    def _called(self, attempt: Attempt, context: SyncContext) -> Any:
        value = self.call(attempt, context)
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError(
                f"the handler of kind {attempt.kind!r} returned a coroutine although it is not `async def`: "
                "make the function around it async too"
            )
        return value

    async def around(self, context: Context, handler: Callable[[], Awaitable[Any]]) -> Any:
        """Await `handler` inside the middleware: the first registered is the outermost."""
        call = handler
        for middleware in reversed(self._middlewares):
            call = partial(middleware, context, _next(call))
        return await call()

    def stopped(self, attempt: Attempt) -> Ending:
        """How an attempt ends that the worker's shutdown cut short: released or failed, as the kind says."""
        if handler_parts(self.handler).on_shutdown == "fail":
            error = describe(RuntimeError("Worker received SIGTERM"), code="shutdown")
            return Ending(attempt, outcome=Outcome.FAILED_FOR_GOOD, error=error)
        return Ending(attempt, outcome=Outcome.RELEASED)


def plans_of(app: App, *, isolates: bool = True) -> dict[str, HandlerPlan]:
    """A plan for each kind; handlers run inside a span if the program has configured tracing by now."""
    parts = app_parts(app)
    around = [in_span, *parts.middlewares] if is_on(parts.tracing) else parts.middlewares
    return {
        kind: HandlerPlan(handler, around, parts.blocking_middlewares, isolates=isolates)
        for kind, handler in parts.handlers.items()
    }


def awaits(function: Callable[..., Any]) -> bool:
    """Whether a coroutine function can pause: has any `await`, `async for` or `async with` in its own code.

    The outermost code counts, not what it wraps: a decorator may await where the function below it does not.
    """
    return any(instruction.opname in AWAITING for instruction in dis.get_instructions(function))


def _next(following: Callable[[], Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def call_next(_context: Any = None) -> Any:  # with the context or without, as people know it from elsewhere
        return await following()

    return call_next


def _next_blocking(following: Callable[[], Any]) -> Callable[..., Any]:
    return lambda _context=None: following()
