"""`ctx.transaction()` and finalizers: the user's writes and the job's end in one transaction.

The end comes last. It is the fence: a stale attempt finds that its row is gone, and everything is rolled back. The row
is not locked any earlier, because a lock that user code holds would stall the sweep of the whole fleet when that code,
or its machine, stands still.
"""

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from fenceline.client import connections
from fenceline.context.endings import encode_end
from fenceline.database import context_calls, worker_calls
from fenceline.database.calls import Call
from fenceline.errors import InvalidOption, StaleAttempt, Unsupported
from fenceline.model.with_errors import WithErrors

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline
    from fenceline.client.finalizer import Finalizer
    from fenceline.context.context import Context
    from fenceline.context.sync_context import SyncContext

OWN_NAMES = frozenset({"__wrapped__", "errors", "result"})


class TransactionConnection:
    """The connection of a transaction, with room for the job's `result` and `errors`; all else is the connection's."""

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

    def __init__(self, context: "Context") -> None:
        self._context = context
        self.outcome = "succeeded"

    @asynccontextmanager
    async def open(self, given: Any = None) -> AsyncIterator[TransactionConnection]:
        """A transaction for the block; after it, the attempt has ended. Raises StaleAttempt."""
        async with self._connection(given) as connection:
            commit, rollback = await _begin(connection)
            own = TransactionConnection(connection)
            try:
                yield own
                await self._finalize(own)
                self._context.set_ending(is_ending=True)
                await self._context.flush()  # after the end, what the handler logged would be stale
                self._accept(await connections.run(own, self._finish(own)))
                await _finished(commit())
                self._context.transaction_done = self
            except BaseException as error:
                self._context.set_ending(is_ending=False)
                with contextlib.suppress(Exception):  # a broken connection is rolled back by the server
                    await _finished(rollback())
                if isinstance(error, StaleAttempt):
                    await self._context.tell_stale()
                raise

    @asynccontextmanager
    async def _connection(self, given: Any) -> AsyncIterator[Any]:
        app = self._app()
        if given is not None:
            yield given
        else:
            async with app.caller().transaction_connection() as connection:
                yield connection

    async def _finalize(self, own: TransactionConnection) -> None:
        _unpack(own)
        finalizer = self._finalizer()
        if finalizer is None:
            return
        if not finalizer.is_async:
            raise TypeError(f"the finalizer of {self._context.kind!r} is a def: it cannot run in an async transaction")
        self._must_live(await connections.run(own, self._check()))
        await finalizer(connection=own, ctx=self._context, result=own.result)

    @contextmanager
    def open_blocking(self, ctx: "SyncContext", given: Any = None) -> Iterator[TransactionConnection]:
        """As `open`, for blocking code: with a psycopg connection of its own, or the one given."""
        with self._blocking_connection(given) as connection:
            _begin_blocking(connection)
            own = TransactionConnection(connection)
            try:
                yield own
                self._finalize_blocking(own, ctx)
                self._context.set_ending(is_ending=True)
                ctx.flush()
                self._accept(connections.run_blocking(own, self._finish(own)))
                connection.commit()
                self._context.transaction_done = self
            except BaseException as error:
                self._context.set_ending(is_ending=False)
                with contextlib.suppress(Exception):  # as above
                    connection.rollback()
                if isinstance(error, StaleAttempt):
                    ctx.tell_stale()
                raise

    def _finalize_blocking(self, own: TransactionConnection, ctx: "SyncContext") -> None:
        _unpack(own)
        finalizer = self._finalizer()
        if finalizer is None:
            return
        if finalizer.is_async:
            raise TypeError(
                f"the finalizer of {self._context.kind!r} is async: it cannot run in a blocking transaction"
            )
        self._must_live(connections.run_blocking(own, self._check()))
        finalizer(connection=own, ctx=ctx, result=own.result)

    @contextmanager
    def _blocking_connection(self, given: Any) -> Iterator[Any]:
        app = self._app()
        if given is not None:
            yield given
            return
        try:
            import psycopg  # noqa: PLC0415 - only where it is used
        except ImportError as error:
            raise Unsupported(
                "ctx.transaction() of a blocking handler needs psycopg (pip install 'fenceline[psycopg]'), or a "
                "connection or session of your own: ctx.transaction(session)"
            ) from error
        # No prepared statements: a pooler may hand every transaction to another session.
        with contextlib.closing(psycopg.connect(app.sync.dsn(), prepare_threshold=None)) as connection:
            yield connection

    def _app(self) -> "Fenceline":
        app = self._context.app
        if app is None or not self._context.desk.has_database:
            raise Unsupported(
                "ctx.transaction() needs the database, and this handler runs without one: return the result, and let a "
                "finalizer of the kind write it"
            )
        return app

    def _finalizer(self) -> "Finalizer | None":
        return self._app().handlers[self._context.kind].own_finalizer

    def _check(self) -> Call[list[Any]]:
        return worker_calls.check_attempts([self._context.job_id], [self._context.attempt_id])

    def _must_live(self, words: list[Any]) -> None:
        """A finalizer does not run for an attempt that is gone already: its writes would be rolled back anyway."""
        if any(word == "stale" for _attempt_id, word, _grace_seconds in words):
            self._accept("stale")

    def _finish(self, own: TransactionConnection) -> Call[str]:
        encode = self._app().handlers[self._context.kind].arguments.encode_result
        end = encode_end(self._context, own.result, encode, own.errors)
        self.outcome = end.outcome
        return context_calls.finish_attempt(
            self._context.job_id, self._context.attempt_id, end.outcome, result=end.result, errors=end.errors
        )

    def _accept(self, verdict: str) -> None:
        if verdict != "accepted":
            raise StaleAttempt(f"the attempt of job {self._context.job} is gone: everything was rolled back")


def _unpack(own: TransactionConnection) -> None:
    if isinstance(own.result, WithErrors):
        own.errors = [*(own.errors or ()), *own.result.errors]
        own.result = own.result.value


async def _begin(connection: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Begin a transaction; how to commit it and how to roll it back. Raises InvalidOption."""
    family = connections.family_of(connection)
    if family == "asyncpg":
        if connection.is_in_transaction():
            raise InvalidOption(
                "the connection is in a transaction already, and whoever began that decides whether the job's end is "
                "kept: give ctx.transaction() a connection without one, and write inside its block"
            )
        transaction = connection.transaction()
        await transaction.start()
        return transaction.commit, transaction.rollback
    if "psycopg" in family:
        _refuse_autocommit(is_autocommit=connection.autocommit)
    else:
        await connections.run(connection, context_calls.enter_transaction())
        _refuse_autocommit(is_autocommit=not await connections.run(connection, context_calls.is_in_transaction()))
    return connection.commit, connection.rollback


def _begin_blocking(connection: Any) -> None:
    """As `_begin`; both families begin by themselves."""
    if connections.family_of(connection) == "psycopg":
        _refuse_autocommit(is_autocommit=connection.autocommit)
    else:
        connections.run_blocking(connection, context_calls.enter_transaction())
        _refuse_autocommit(is_autocommit=not connections.run_blocking(connection, context_calls.is_in_transaction()))


def _refuse_autocommit(*, is_autocommit: bool) -> None:
    if is_autocommit:
        raise InvalidOption("the connection is in autocommit mode: a transaction needs autocommit off")


async def _finished(value: Any) -> None:
    if inspect.isawaitable(value):
        await value
