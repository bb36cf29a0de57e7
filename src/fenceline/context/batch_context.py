"""What a batch handler knows and can do for all of its jobs together."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any

from fenceline.context.batch_transaction import BatchTransaction
from fenceline.context.context import Context
from fenceline.context.sync_context import SyncContext
from fenceline.errors import Cancelled

if TYPE_CHECKING:
    from fenceline.context.batch_part import BatchPart
    from fenceline.context.session import Session
    from fenceline.context.sync_context import Wait
    from fenceline.context.transaction import TransactionConnection


class _Together:
    """What both contexts have in common."""

    def __init__(self, parts: Sequence["BatchPart"]) -> None:
        self._parts = parts

    @property
    def kind(self) -> str:
        """The kind of the jobs; all of a batch have the same."""
        return self._parts[0].session.attempt.kind

    @property
    def cancelled(self) -> bool:
        """Whether all jobs of the batch were asked to stop; `item.cancelled` is about one job."""
        return all(part.session.cancelled for part in self._parts)

    @property
    def shutting_down(self) -> bool:
        """Whether the worker is about to stop: the handler may end within the grace period."""
        return any(part.session.shutting_down for part in self._parts)

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when all jobs of the batch were asked to stop."""
        if self.cancelled:
            raise Cancelled("all jobs of the batch were asked to stop")


class BatchContext(_Together):
    """Handed to async batch handlers that have a parameter `ctx`. Steps, waits and locks are for one job at a time."""

    def transaction(self, connection: Any = None) -> "AbstractAsyncContextManager[TransactionConnection]":
        """End all jobs of the batch in a transaction of your own: what you write in the block and their ends commit
        together.

            async with ctx.transaction() as conn:
                await conn.executemany("insert into event values ($1)", [(item.args.name,) for item in jobs])

        Jobs for which `item.fail` was called end as failed in it, all others as succeeded. If one of them has lost its
        claim, everything is rolled back (StaleAttempt); the others are run again, which costs them no attempt.
        `connection`: as in `Context.transaction`.
        """
        self.raise_if_cancelled()
        return BatchTransaction(self._parts).open(connection)


class SyncBatchContext(_Together):
    """Handed to `def` batch handlers that have a parameter `ctx`. See `BatchContext`."""

    def __init__(self, parts: Sequence["BatchPart"], wait: "Wait") -> None:
        super().__init__(parts)
        self._wait = wait

    def transaction(self, connection: Any = None) -> "AbstractContextManager[TransactionConnection]":
        """As `BatchContext.transaction`, with a psycopg connection, or the psycopg or SQLAlchemy one given."""
        self.raise_if_cancelled()
        first = self._parts[0].session
        return BatchTransaction(self._parts).open_blocking(SyncContext(first, self._wait), self._wait, connection)


def batch_context(parts: Sequence["BatchPart"], wait: "Wait | None") -> BatchContext | SyncBatchContext:
    """`wait`: of a blocking handler."""
    return BatchContext(parts) if wait is None else SyncBatchContext(parts, wait)


def behind(context: Context | SyncContext) -> "tuple[Session, Wait | None]":
    """The session behind a context, for a batch handler that runs a single job; and how to wait, if it blocks."""
    session = context._session  # noqa: SLF001 - this is the door
    return session, context._wait if isinstance(context, SyncContext) else None  # noqa: SLF001 - as above
