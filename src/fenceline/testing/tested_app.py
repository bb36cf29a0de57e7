"""An app in a test: the app itself, with verbs that only a test has."""

from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, Unpack, cast

from fenceline.backends.chosen import ChosenDelivery
from fenceline.client.app import Fenceline
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
    """What the fixture `fenceline_app` gives: an app on a database of its own, run by the test itself.

    `sync` has `drain`, `advance`, `assert_enqueued` and `make_context` for `def` tests.
    """

    __test__ = False  # not a class of tests, whatever pytest thinks of its name

    sync: "SyncTestedApp"

    async def drain(self, *, raises: bool = True) -> int:
        """Run all jobs that are due, and what they bring, in this process; how many attempts that took.

        Then it raises what handlers have raised: one exception as it is, several as an ExceptionGroup. Attempts that
        Snooze, Cancel or RetryLater ended have not failed. `raises=False`: look at the jobs instead.
        """
        return await drain_raising(self, raises=raises)

    def use_credentials(self, provider: CredentialProvider) -> None:
        """Have handlers get their credentials from this provider until the test ends: `FakeCredentials`, say."""
        app_parts(self).credential_provider = provider

    async def advance(self, by: timedelta | None = None, /, **duration: float) -> None:
        """Let time pass for the database: `advance(hours=1)`, or a timedelta. The next `drain` runs what is due then.

        Times in Python do not move. Raises NoTestClock where the database is not one of the test kit's.
        """
        total = (by or timedelta()) + timedelta(**duration)
        async with app_parts(self).database().transaction_connection() as connection:
            await advance_clock(connection, total)

    async def assert_enqueued(
        self, kind: Kind, args: Mapping[str, Any] | None = None, *, count: int | None = None, **facts: Any
    ) -> list[JobRecord]:
        """Assert that jobs were enqueued, whatever became of them since; returns them, the first enqueued first.

            await app.assert_enqueued("ingest", args={"path": "a"}, count=1, lane="interactive", status="queued")

        `args`: those named have these values. `count`: exactly so many (0: none); else at least one. `facts`: fields of
        the job's record. The message of a failure says what was enqueued instead.
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
        A `def` handler needs that of `sync.make_context`: TypeError.
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
        """Close the connections of the blocking methods; the fixture does this after each test."""
        if self._loop is not None:
            self._loop.run(self._app.close())
            self._loop.close()
            self._loop = None
        super().close()


async def drain_raising(app: Fenceline, *, raises: bool = True) -> int:
    """As `TestedApp.drain`, of any app."""
    failures = Failures()
    count = await drain(app, failures)
    if raises:
        failures.raise_all()
    return count


def drain_blocking(app: Fenceline, *, raises: bool = True) -> int:
    """As `TestedApp.drain`, of any app, in blocking code; its connections end with it."""
    with LoopThread() as loop:
        try:
            return loop.run(drain_raising(app, raises=raises))
        finally:
            loop.run(app.close())


@contextmanager
def under_test(app: Fenceline, dsn: str, delivery: str = "postgres") -> Iterator[TestedApp]:
    """The app itself, and so its handlers, on another database and with a test's verbs, until the block ends.

    Raises ValueError for an unknown delivery.
    """
    if delivery not in {"postgres", "inline"}:
        raise ValueError(f"a test cannot have the delivery {delivery!r}: use postgres or inline")
    before = app.__class__, app_parts(app).source, app_parts(app).delivery, app.sync.__class__
    credentials = app_parts(app).credential_provider
    app.sync.close()
    # What a class of somebody's own adds to `Fenceline` stays.
    tested = type("TestedApp", (TestedApp, app.__class__), {})
    _become(app, tested, Source(dsn), ChosenDelivery(delivery), SyncTestedApp)
    try:
        yield cast("TestedApp", app)
    finally:
        app.sync.close()
        app_parts(app).credential_provider = credentials
        _become(app, *before)


def _become(
    app: Fenceline, kind: type[Fenceline], source: Source, delivery: ChosenDelivery, sync_kind: type[SyncFenceline]
) -> None:
    app.__class__ = kind
    app.sync.__class__ = sync_kind
    app_parts(app).source = source
    app_parts(app).delivery = delivery
