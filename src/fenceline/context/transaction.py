"""`ctx.transaction()` and finalizers: the user's writes and the job's end in one transaction.

The end comes last, so that the attempt's row is locked for no longer than the commit takes. A stale attempt finds that
its row is gone: everything is rolled back.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from fenceline.client import connections
from fenceline.context.endings import encode_end
from fenceline.database import context_calls
from fenceline.database.calls import Call
from fenceline.errors import InvalidOption, StaleAttempt, Unsupported

if TYPE_CHECKING:
    from fenceline.client.app import Fenceline
    from fenceline.client.finalizer import Finalizer
    from fenceline.context.context import Context


class TransactionConnection:
    """The connection of a transaction, with room for the job's `result` and `errors`; all else is the connection's."""

    def __init__(self, connection: Any) -> None:
        self.__wrapped__ = connection
        self.result: Any = None
        self.errors: list[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


class Transaction:
    """One try to end an attempt together with what the user writes."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self.outcome = "succeeded"

    @asynccontextmanager
    async def open(self, given: Any = None) -> AsyncIterator[TransactionConnection]:
        """A transaction for the block; after it, the attempt has ended. Raises StaleAttempt."""
        async with self._connection(given) as connection:
            await _begin(connection)
            own = TransactionConnection(connection)
            try:
                yield own
                await self._context.flush()  # after the end, what the handler logged would be stale
                await self._finalize(own)
                self._accept(await connections.run(own, self._finish(own)))
                await _maybe_await(connection.execute("commit") if _is_asyncpg(connection) else connection.commit())
            except BaseException:
                await _maybe_await(_rollback(connection))
                raise
        self._context.transaction_done = self

    @asynccontextmanager
    async def _connection(self, given: Any) -> AsyncIterator[Any]:
        app = self._app()
        if given is not None:
            yield given
        else:
            async with app.caller().connection() as connection:
                yield connection

    async def _finalize(self, own: TransactionConnection) -> None:
        finalizer = self._finalizer()
        if finalizer is None:
            return
        if not finalizer.is_async:
            raise TypeError(f"the finalizer of {self._context.kind!r} is a def: it cannot run in an async transaction")
        call = context_calls.lock_attempt(self._context.job_id, self._context.attempt_id)
        await connections.run(own, call)
        await finalizer(connection=own, ctx=self._context, result=own.result)

    @contextmanager
    def open_blocking(self, flush: Callable[[], None], given: Any = None) -> Iterator[TransactionConnection]:
        """As `open`, for blocking code: with a psycopg connection of its own, or the one given."""
        with self._blocking_connection(given) as connection:
            _refuse_autocommit(connection)
            own = TransactionConnection(connection)
            try:
                yield own
                flush()
                self._finalize_blocking(own)
                self._accept(connections.run_blocking(own, self._finish(own)))
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        self._context.transaction_done = self

    def _finalize_blocking(self, own: TransactionConnection) -> None:
        finalizer = self._finalizer()
        if finalizer is None:
            return
        if finalizer.is_async:
            raise TypeError(
                f"the finalizer of {self._context.kind!r} is async: it cannot run in a blocking transaction"
            )
        call = context_calls.lock_attempt(self._context.job_id, self._context.attempt_id)
        connections.run_blocking(own, call)
        finalizer(connection=own, ctx=self._context, result=own.result)

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
        with psycopg.connect(app.sync.dsn()) as connection:
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

    def _finish(self, own: TransactionConnection) -> Call[str]:
        encode = self._app().handlers[self._context.kind].arguments.encode_result
        end = encode_end(self._context, own.result, encode, own.errors)
        self.outcome = end.outcome
        return context_calls.finish_attempt(
            self._context.job_id, self._context.attempt_id, end.outcome, result=end.result, errors=end.errors
        )

    def _accept(self, verdict: str) -> None:
        if verdict != "accepted":
            if self._context.on_stale is not None:
                self._context.on_stale(self._context.attempt_id)
            raise StaleAttempt(f"the attempt of job {self._context.job} is gone: everything was rolled back")


def _is_asyncpg(connection: Any) -> bool:
    return type(connection).__module__.partition(".")[0] == "asyncpg"


def _rollback(connection: Any) -> Any:
    if _is_asyncpg(connection):
        return None if connection.is_closed() else connection.execute("rollback")
    return connection.rollback()


async def _begin(connection: Any) -> None:
    if _is_asyncpg(connection):
        if not connection.is_in_transaction():
            await connection.execute("begin")
    else:
        _refuse_autocommit(connection)  # the others begin by themselves


def _refuse_autocommit(connection: Any) -> None:
    if getattr(connection, "autocommit", None) is True:
        raise InvalidOption("the connection is in autocommit mode: a transaction needs autocommit off")


async def _maybe_await(value: Any) -> None:
    if inspect.isawaitable(value):
        await value
