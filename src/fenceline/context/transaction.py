"""`ctx.transaction()` and finalizers: the user's writes and the job's end in one transaction.

The end comes last. It is the fence: a stale attempt finds that its row is gone, and everything is rolled back. The row
is not locked any earlier, because a lock that user code holds would stall the sweep of the whole fleet when that code,
or its machine, stands still.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import handler_parts
from fenceline.context.endings import ending_of_value
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.database.sealing import with_codec
from fenceline.errors import InvalidOption, StaleAttempt, Unsupported
from fenceline.model.outcome import Outcome
from fenceline.model.with_errors import WithErrors
from fenceline.runtime import connections

if TYPE_CHECKING:
    from fenceline.client.app import App
    from fenceline.client.finalizer import Finalizer
    from fenceline.context.context import Context
    from fenceline.context.session import Session
    from fenceline.context.sync_context import SyncContext, Wait

OWN_NAMES = frozenset({"__wrapped__", "errors", "result"})


class TransactionConnection:
    """The connection of a transaction, with the job's `result` and `errors` as attributes of its own."""

    def __init__(self, connection: Any) -> None:
        self.__wrapped__ = connection
        self.result: Any = None
        self.errors: list[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN_NAMES:
            super().__setattr__(name, value)
        else:
            setattr(self.__wrapped__, name, value)


class Transaction:
    """One try to end an attempt together with what the user writes."""

    def __init__(self, session: "Session", context: "Context") -> None:
        """`context`: for an async finalizer."""
        self._session = session
        self._context = context
        self._outcome = Outcome.SUCCEEDED

    @asynccontextmanager
    async def open(self, given: Any = None) -> AsyncIterator[TransactionConnection]:
        """A transaction for the block; after it, the attempt has ended. Raises StaleAttempt."""
        async with self._connection(given) as connection:
            commit, rollback = await _begin(connection)
            own = TransactionConnection(connection)
            try:
                with self._as_open(own):
                    yield own
                    await self._finalize(own)
                self._set_ending(is_ending=True)
                await self._flush()  # after the end, what the handler logged would be stale
                self._accept(await connections.run(own, self._sealed_finish(own)))
                await _finished(commit())
                self._done()
            except BaseException as error:
                self._set_ending(is_ending=False)
                with contextlib.suppress(Exception):  # a broken connection is rolled back by the server
                    await _finished(rollback())
                if isinstance(error, StaleAttempt):
                    await self._tell_stale()
                raise

    async def finish_with(
        self, value: Any, make_blocking: "Callable[[Session, Wait], SyncContext]", wait: "Wait"
    ) -> None:
        """End the attempt with this value, and its finalizer in the same transaction: on the loop, or in a thread with
        the context that `make_blocking` makes. Raises StaleAttempt, and what the finalizer raises.
        """
        finalizer = self._finalizer()
        if finalizer is None or finalizer.is_async:
            async with self.open() as own:
                own.result = value
        else:
            await asyncio.to_thread(self.finish_blocking, value, make_blocking(self._session, wait), wait)

    def finish_blocking(self, value: Any, ctx: "SyncContext", wait: "Wait") -> None:
        """As `finish_with`, in this thread."""
        with self.open_blocking(ctx, wait) as own:
            own.result = value

    @contextmanager
    def _as_open(self, own: TransactionConnection) -> Iterator[None]:
        self._session.transaction_open = own
        try:
            yield
        finally:
            self._session.transaction_open = None

    @asynccontextmanager
    async def _connection(self, given: Any) -> AsyncIterator[Any]:
        app = self._app()
        if given is not None:
            yield given
        else:
            async with app_parts(app).database().transaction_connection() as connection:
                yield connection

    async def _finalize(self, own: TransactionConnection) -> None:
        _unpack(own)
        finalizer = self._finalizer()
        if finalizer is None:
            return
        if not finalizer.is_async:
            raise TypeError(
                f"the finalizer of {self._session.attempt.kind!r} is a def: it cannot run in an async transaction"
            )
        self._must_live(await connections.run(own, self._check()))
        await finalizer(connection=own, ctx=self._context, result=own.result)

    @contextmanager
    def open_blocking(self, ctx: "SyncContext", wait: "Wait", given: Any = None) -> Iterator[TransactionConnection]:
        """As `open`, for blocking code: with a psycopg connection of its own, or the one given."""
        with self._blocking_connection(wait, given) as connection:
            _begin_blocking(connection)
            own = TransactionConnection(connection)
            try:
                with self._as_open(own):
                    yield own
                    self._finalize_blocking(own, ctx)
                self._set_ending(is_ending=True)
                wait(self._flush())
                self._accept(connections.run_blocking(own, self._sealed_finish(own)))
                connection.commit()
                self._done()
            except BaseException as error:
                self._set_ending(is_ending=False)
                with contextlib.suppress(Exception):  # as above
                    connection.rollback()
                if isinstance(error, StaleAttempt):
                    wait(self._tell_stale())
                raise

    def _finalize_blocking(self, own: TransactionConnection, ctx: "SyncContext") -> None:
        _unpack(own)
        finalizer = self._finalizer()
        if finalizer is None:
            return
        if finalizer.is_async:
            raise TypeError(
                f"the finalizer of {self._session.attempt.kind!r} is async: it cannot run in a blocking transaction"
            )
        self._must_live(connections.run_blocking(own, self._check()))
        finalizer(connection=own, ctx=ctx, result=own.result)

    @contextmanager
    def _blocking_connection(self, wait: "Wait", given: Any) -> Iterator[Any]:
        app = self._app()
        if given is not None:
            yield given
            return
        try:
            import psycopg
        except ImportError as error:
            raise Unsupported(
                "ctx.transaction() of a blocking handler needs psycopg (pip install 'fenceline[psycopg]'), or a "
                "connection or session of your own: ctx.transaction(session)"
            ) from error
        with (
            _place_for_transaction(app, wait),
            # No prepared statements: a pooler may hand every transaction to another session.
            contextlib.closing(psycopg.connect(app.sync.dsn(), prepare_threshold=None)) as connection,
        ):
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            yield connection

    def _app(self) -> "App":
        app = self._session.app
        if app is None or not self._session.api.has_database:
            raise Unsupported(
                "ctx.transaction() needs the database, and this handler runs without one: return the result, and let a "
                "finalizer of the kind write it"
            )
        return app

    def _finalizer(self) -> "Finalizer | None":
        return handler_parts(app_parts(self._app()).handlers[self._session.attempt.kind]).finalizer

    def _check(self) -> Call[list[Any]]:
        return calls.attempts.check_attempts([self._session.attempt.job_id], [self._session.attempt.attempt_id])

    def _must_live(self, notices: list[Any]) -> None:
        """A finalizer does not run for an attempt that is gone: its writes would be rolled back anyway."""
        if any(notice == "stale" for _attempt_id, notice, _grace_seconds in notices):
            self._accept("stale")

    def _sealed_finish(self, own: TransactionConnection) -> Call[Any]:
        return with_codec(self._finish(own), app_parts(self._app()).codec)

    def _finish(self, own: TransactionConnection) -> Call[Any]:
        encode = handler_parts(app_parts(self._app()).handlers[self._session.attempt.kind]).arguments.encode_result
        ending = ending_of_value(self._session, own.result, encode, own.errors)
        self._outcome = ending.outcome
        return calls.attempts.finish_attempt(
            self._session.attempt.job_id,
            self._session.attempt.attempt_id,
            ending.outcome,
            result=ending.result,
            errors=ending.errors,
            in_transaction=True,
        )

    def _set_ending(self, *, is_ending: bool) -> None:
        self._session.set_ending(is_ending=is_ending)

    async def _flush(self) -> None:
        await self._session.flush()

    def _done(self) -> None:
        self._session.transaction_done = self._outcome

    async def _tell_stale(self) -> None:
        await self._session.tell_stale()

    def _accept(self, verdict: Any) -> None:
        if verdict != "accepted":
            raise StaleAttempt(f"the attempt of job {self._session.attempt.id} is gone: everything was rolled back")


@contextmanager
def _place_for_transaction(app: "App", wait: "Wait") -> Iterator[None]:
    """Take one of the places that a worker has for transactions of handlers: each needs a connection."""

    async def take() -> None:
        await app_parts(app).database().take_transaction_place()

    async def leave() -> None:
        await app_parts(app).database().leave_transaction_place()

    wait(take())
    try:
        yield
    finally:
        wait(leave())


def _unpack(own: TransactionConnection) -> None:
    if isinstance(own.result, WithErrors):
        own.errors = [*(own.errors or ()), *own.result.errors]
        own.result = own.result.value


async def _begin(connection: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Begin a transaction; how to commit it and how to roll it back. Raises InvalidOption."""
    family = connections.async_family_of(connection)
    if family == "asyncpg":
        if connection.is_in_transaction():
            raise InvalidOption(
                "the connection is in a transaction already, and whoever began that decides whether the job's end is "
                "kept: give ctx.transaction() a connection without one, and write inside its block"
            )
        transaction = connection.transaction()
        await transaction.start()
        return transaction.commit, transaction.rollback
    if family == "async psycopg":
        _refuse_autocommit(is_autocommit=connection.autocommit)
    else:
        await connections.run(connection, calls.context.enter_transaction())
        _refuse_autocommit(is_autocommit=not await connections.run(connection, calls.context.is_in_transaction()))
    return connection.commit, connection.rollback


def _begin_blocking(connection: Any) -> None:
    """As `_begin`; both families begin by themselves."""
    if connections.blocking_family_of(connection) == "psycopg":
        _refuse_autocommit(is_autocommit=connection.autocommit)
    else:
        connections.run_blocking(connection, calls.context.enter_transaction())
        _refuse_autocommit(is_autocommit=not connections.run_blocking(connection, calls.context.is_in_transaction()))


def _refuse_autocommit(*, is_autocommit: bool) -> None:
    if is_autocommit:
        raise InvalidOption("the connection is in autocommit mode: a transaction needs autocommit off")


async def _finished(value: Any) -> None:
    if inspect.isawaitable(value):
        await value
