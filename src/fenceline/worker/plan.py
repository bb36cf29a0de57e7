"""How one kind is run, worked out once: where, whether inline, and how args and context reach the function."""

import dis
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fenceline.client.app import Middleware
from fenceline.client.handler import Handler
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.context import Context
from fenceline.context.failure import describe
from fenceline.context.sync_context import SyncContext

AWAITING = frozenset({"GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH", "SEND", "YIELD_VALUE"})


class Plan:
    def __init__(self, handler: Handler[Any, Any], middlewares: Sequence[Middleware] = ()) -> None:
        self._handler = handler
        self._function = handler.function
        self.takes_context = "ctx" in inspect.signature(handler.function).parameters
        self.finalizer = handler.own_finalizer
        self._decode = handler.arguments.decode
        self._middlewares = tuple(middlewares)
        self.encode_result = handler.arguments.encode_result
        self.memory_limit_mb = handler.memory_limit_mb
        self.is_async = inspect.iscoroutinefunction(handler.function)
        self.mode = "isolated" if handler.isolated else "loop" if self.is_async else "thread"
        self.inline = (
            self.mode == "loop" and not self._middlewares and self.finalizer is None and not awaits(handler.function)
        )

    @property
    def handler(self) -> Handler[Any, Any]:
        return self._handler

    def call(self, attempt: Attempt, context: Context | SyncContext) -> Any:
        """Call the function: its value, or its coroutine if it is async."""
        args = self._decode(attempt.args)
        if self.takes_context:
            return self._function(**args, ctx=context)
        return self._function(**args)

    def call_blocking(self, attempt: Attempt, context: SyncContext) -> Any:
        value = self.call(attempt, context)
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError(
                f"the handler of kind {attempt.kind!r} returned a coroutine although it is no `async def`: "
                "make the function around it async too"
            )
        return value

    @property
    def has_middleware(self) -> bool:
        return bool(self._middlewares)

    async def around(self, context: Context, handler: Callable[[], Awaitable[Any]]) -> Any:
        """Run what runs the handler, inside the middleware: the first registered is the outermost."""
        call = handler
        for middleware in reversed(self._middlewares):
            call = _enter(middleware, context, call)
        return await call()

    def stopped(self, attempt: Attempt) -> Ending:
        """The worker is told to stop and the handler had to go: back to the queue, or failed, as the kind says."""
        if self._handler.on_shutdown == "fail":
            error = describe(RuntimeError("Worker received SIGTERM"), code="shutdown")
            return Ending(attempt, outcome="failed_for_good", error=error)
        return Ending(attempt, outcome="released")


def awaits(function: Callable[..., Any]) -> bool:
    """Whether a coroutine function can pause: has any `await`, `async for` or `async with` in its own code.

    The outermost code counts, not what it wraps: a decorator may await where the function below it does not.
    """
    return any(instruction.opname in AWAITING for instruction in dis.get_instructions(function))


def _enter(
    middleware: Middleware, context: Context, following: Callable[[], Awaitable[Any]]
) -> Callable[[], Awaitable[Any]]:
    async def call_next(_context: Any = None) -> Any:  # with the context or without, as people know it from elsewhere
        return await following()

    async def enter() -> Any:
        return await middleware(context, call_next)

    return enter
