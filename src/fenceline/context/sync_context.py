"""The context of a blocking handler: the verbs of `Context`, each waiting until it is done.

The work is done on an event loop in another thread; a step's function runs right here, in the handler's own.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Unpack

from typing_extensions import TypeVar

from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.job import Job
from fenceline.client.sync_job import SyncJob
from fenceline.context import waits
from fenceline.context.attempt_facts import AttemptFacts
from fenceline.context.context import Context
from fenceline.context.guards import must_be_newest, version_text
from fenceline.context.lock_blocks import take
from fenceline.context.session import Session
from fenceline.context.transaction import Transaction, TransactionConnection
from fenceline.database import calls
from fenceline.runtime import connections
from fenceline.runtime.lock_block import Block, holding, inside

if TYPE_CHECKING:
    from fenceline.client.handler import Handler

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", default=Any)


class Wait(Protocol):
    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


def wait_on(loop: asyncio.AbstractEventLoop) -> Wait:
    """For a thread: have a coroutine run on the loop, and wait for it."""

    def wait(coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    return wait


class SyncContext(AttemptFacts):
    """Handed to `def` handlers that have a parameter `ctx`. See `Context` for what each verb promises."""

    def __init__(self, session: Session, wait: Wait) -> None:
        super().__init__(session)
        self._context = Context(session)
        self._wait = wait

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Begin a phase, with empty progress: `with ctx.phase("inventory"):`, or just call it."""
        self._wait(self._session.begin_phase(name))
        return nullcontext()

    def progress(
        self, done: float | None = None, total: float | None = None, message: str | None = None, **fields: Any
    ) -> None:
        self._wait(self._context.progress(done, total, message, **fields))

    @property
    def items(self) -> "SyncItems":
        return SyncItems(self._context, self._wait)

    def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"step {name!r} is async, but its handler is not: make it a def, or the handler async")
        step = self._session.begin_step(name, function, args, kwargs)
        if not step.is_done:
            try:
                with self._session.step_span(step):
                    value = function(*args, **kwargs)
                self._wait(self._session.step_done(step, value))
            except Exception as error:
                self._wait(self._session.step_failed(step, error))
                raise
        return step.decode()  # type: ignore[no-any-return]  # as the function declares, or JSON

    def list_steps(self, *names: str) -> None:
        self._wait(self._context.list_steps(*names))

    def checkpoint(self, state: Any) -> None:
        self._wait(self._context.checkpoint(state))

    def sleep(self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        duration = waits.sleep_seconds(seconds, minutes, hours, days)
        waits.conclude(self._wait(waits.begin(self._session, "sleep", None, duration)), None, duration)

    def wait_for(self, signal: str, *, timeout: float | timedelta | None = None) -> Any:
        seconds = None if timeout is None else waits.seconds_of("a timeout", timeout)
        # Raised here, in the handler's own thread.
        return waits.conclude(
            self._wait(waits.begin(self._session, f"wait:{signal}", signal, seconds)), signal, seconds
        )

    def callback_url(self, signal: str, *, expires_in: float | timedelta = waits.CALLBACK_SECONDS) -> str:
        return self._wait(self._context.callback_url(signal, expires_in=expires_in))

    @contextmanager
    def lock(self, namespace: str, id: str | int) -> Iterator[None]:
        block = Block(namespace, str(id))
        try:
            self._wait(take(self._session, block, holding()))
            with inside(block):
                yield
        finally:
            self._wait(self._session.release_lock(block.owner))

    def guard_newer(self, resource: str, version: float | Decimal | datetime) -> bool:
        if self._session.transaction_open is None:
            return self._wait(self._context.guard_newer(resource, version))
        self.raise_if_cancelled()
        call = calls.context.guard_write(self.job_id, self.attempt_id, resource=resource, version=version_text(version))
        is_newest = connections.run_blocking(self._session.transaction_open, call)
        return must_be_newest(resource, version, is_newest=is_newest)

    def enqueue(
        self, kind: "str | Handler[..., R]", args: Mapping[str, Any] | None = None, **options: Unpack[EnqueueOptions]
    ) -> SyncJob[R]:
        return self._blocking(self._wait(self._context.enqueue(kind, args, **options)))

    def enqueue_many(
        self, kind: "str | Handler[..., R]", many: Iterable[Mapping[str, Any]], **options: Unpack[EnqueueOptions]
    ) -> list[SyncJob[R]]:
        return [self._blocking(child) for child in self._wait(self._context.enqueue_many(kind, many, **options))]

    def transaction(self, connection: Any = None) -> AbstractContextManager[TransactionConnection]:
        """As `Context.transaction`, with a psycopg connection, or the psycopg or SQLAlchemy one given."""
        self._session.check(starts_work=True)
        return Transaction(self._session, self._context).open_blocking(self, self._wait, connection)

    def flush(self) -> None:
        self._wait(self._context.flush())

    def _blocking(self, child: Job[Any]) -> SyncJob[Any]:
        app = self._session.app
        assert app is not None  # noqa: S101 - a blocking handler belongs to an app
        return app.sync.jobs.handle(child.id)


class SyncItems:
    def __init__(self, context: Context, wait: Wait) -> None:
        self._items = context.items
        self._wait = wait

    def start(self, *items: str) -> dict[str, int]:
        return self._wait(self._items.start(*items))

    def complete(self, *items: str) -> dict[str, int]:
        return self._wait(self._items.complete(*items))

    def skip(self, *items: str, reason: str) -> dict[str, int]:
        return self._wait(self._items.skip(*items, reason=reason))

    def fail(self, *items: str, error: str | BaseException) -> dict[str, int]:
        return self._wait(self._items.fail(*items, error=error))

    @property
    def errors(self) -> list[dict[str, Any]]:
        return self._items.errors
