"""An app under test: the app itself, with methods that only tests need."""

from collections.abc import Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any, TypeVar, Unpack, cast

from fenceline.app import Fenceline
from fenceline.backends.chosen import ChosenDelivery
from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.credential_providers import CredentialProvider
from fenceline.client.enqueue_options import EnqueueOptions
from fenceline.client.handler import Handler
from fenceline.client.sync_app import SyncFenceline
from fenceline.context.context import Context
from fenceline.context.sync_context import SyncContext
from fenceline.database.dsn import Source
from fenceline.model.job import JobRecord
from fenceline.testing.clock import advance_clock
from fenceline.testing.contexts import make_session, must_be_async
from fenceline.testing.enqueued import explain_miss, matching
from fenceline.testing.handler_failures import Failures
from fenceline.testing.loop_thread import LoopThread
from fenceline.worker.inline import drain

T = TypeVar("T")
Kind = str | Handler[..., Any]


class TestedApp(Fenceline):
    """What the fixture `fenceline_app` gives: an app with its own database, whose jobs the test itself runs.

    `sync` has `drain`, `advance`, `assert_enqueued` and `make_context` for `def` tests.
    """

    __test__ = False  # its name looks like a test class to pytest

    sync: "SyncTestedApp"

    async def drain(self, *, raises: bool = True) -> int:
        """Run all due jobs, and those that they enqueue, in this process. Returns the number of attempts.

        Then it raises what handlers raised: a single exception as it is, several as an ExceptionGroup. Attempts that
        ended with Snooze, Cancel or RetryLater have not failed. With `raises=False` look at the jobs instead.
        """
        return await drain_raising(self, raises=raises)

    def use_credentials(self, provider: CredentialProvider) -> None:
        """Give handlers credentials from this provider, such as `FakeCredentials`, until the test ends."""
        app_parts(self).credential_provider = provider

    async def advance(self, by: timedelta | None = None, /, **duration: float) -> None:
        """Move the database's clock: `advance(hours=1)`, or a timedelta. The next `drain` runs what is due by then.

        Python's clock does not move. Raises NoTestClock if the database was not made by the test kit.
        """
        total = (by or timedelta()) + timedelta(**duration)
        async with app_parts(self).database().transaction_connection() as connection:
            await advance_clock(connection, total)

    async def assert_enqueued(
        self, kind: Kind, args: Mapping[str, Any] | None = None, *, count: int | None = None, **facts: Any
    ) -> list[JobRecord]:
        """Assert that jobs were enqueued, whatever became of them since. Returns them, oldest first.

            await app.assert_enqueued("ingest", args={"path": "a"}, count=1, lane="interactive", status="queued")

        `args`: values that their args must contain. `count`: exactly how many (0: none); by default at least one.
        `facts`: fields of the job's record. If it fails, the message shows what was enqueued instead.
        """
        name = kind if isinstance(kind, str) else kind.kind
        everything = [record async for record in self.jobs.each()][::-1]
        of_kind = [record for record in everything if record.kind == name]
        found = matching(of_kind, args or {}, facts)
        is_right = bool(found) if count is None else len(found) == count
        if not is_right:
            raise AssertionError(
                explain_miss(name, args or {}, facts, count=count, found=found, others=of_kind or everything)
            )
        return found

    async def make_context(
        self,
        kind: Kind,
        args: Mapping[str, Any] | None = None,
        *,
        attempt: int = 1,
        resume: Any = None,
        cancelled: bool = False,
        **options: Unpack[EnqueueOptions],
    ) -> Context:
        """A context to call a handler with: `await ingest(ctx, path="a")`.

        Its job is enqueued, with `options`, and claimed, so steps, progress, locks and transactions are real. `attempt`
        is the number that the handler sees, `resume` a checkpoint, `cancelled` whether the job was asked to stop.
        Raises TypeError for a `def` handler, which needs a context of `sync.make_context`.
        """
        must_be_async(self, kind)
        return Context(
            await make_session(self, kind, args, attempt=attempt, resume=resume, cancelled=cancelled, **options)
        )


class SyncTestedApp(SyncFenceline):
    """The verbs of `TestedApp` for `def` tests."""

    _app: TestedApp
    _loop: LoopThread | None = None

    def drain(self, *, raises: bool = True) -> int:
        """As `TestedApp.drain`."""
        return self._run(self._app.drain(raises=raises))

    def advance(self, by: timedelta | None = None, /, **duration: float) -> None:
        """As `TestedApp.advance`."""
        self._run(self._app.advance(by, **duration))

    def assert_enqueued(
        self, kind: Kind, args: Mapping[str, Any] | None = None, *, count: int | None = None, **facts: Any
    ) -> list[JobRecord]:
        """As `TestedApp.assert_enqueued`."""
        return self._run(self._app.assert_enqueued(kind, args, count=count, **facts))

    def make_context(
        self,
        kind: Kind,
        args: Mapping[str, Any] | None = None,
        *,
        attempt: int = 1,
        resume: Any = None,
        cancelled: bool = False,
        **options: Unpack[EnqueueOptions],
    ) -> SyncContext:
        """As `TestedApp.make_context`, for `def` handlers: `publish(ctx, rows=3)`."""
        made = make_session(self._app, kind, args, attempt=attempt, resume=resume, cancelled=cancelled, **options)
        return SyncContext(self._run(made), self._run)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = LoopThread()
        return self._loop.run(work)

    def close(self) -> None:
        """Close the connections of the blocking methods. The fixture does this after each test."""
        if self._loop is not None:
            self._loop.run(self._app.close())
            self._loop.close()
            self._loop = None
        super().close()


async def drain_raising(app: App, *, raises: bool = True) -> int:
    """As `TestedApp.drain`, for any app."""
    failures = Failures()
    count = await drain(app, failures)
    if raises:
        failures.raise_all()
    return count


def drain_blocking(app: App, *, raises: bool = True) -> int:
    """As `TestedApp.drain`, for any app, in blocking code. It closes the app's connections when it is done."""
    with closing(LoopThread()) as loop:
        try:
            return loop.run(drain_raising(app, raises=raises))
        finally:
            loop.run(app.close())


@contextmanager
def under_test(app: App, dsn: str, delivery: str = "postgres") -> Iterator[TestedApp]:
    """Put the app itself, with its handlers, on another database and make it a `TestedApp` until the block ends.

    Raises ValueError for an unknown delivery.
    """
    if delivery not in {"postgres", "inline"}:
        raise ValueError(f"a test cannot have the delivery {delivery!r}: use postgres or inline")
    parts = app_parts(app)
    before = app.__class__, app.sync.__class__, parts.source, parts.delivery, parts.credential_provider
    app.sync.close()
    # A subclass of the app's own class keeps what that adds to `Fenceline`.
    app.__class__ = type("TestedApp", (TestedApp, app.__class__), {})
    app.sync.__class__ = SyncTestedApp
    parts.source, parts.delivery = Source(dsn), ChosenDelivery(delivery)
    try:
        yield cast("TestedApp", app)
    finally:
        app.sync.close()
        app.__class__, app.sync.__class__, parts.source, parts.delivery, parts.credential_provider = before
