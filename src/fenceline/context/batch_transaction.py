"""`ctx.transaction()` of a batch: the user's writes and the ends of all its jobs in one transaction.

One statement ends them all, and is the fence of each: if one attempt is gone everything is rolled back, and nothing is
written twice.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fenceline.context.context import Context
from fenceline.context.endings import columns_of
from fenceline.context.transaction import Transaction, TransactionConnection
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.errors import InvalidOption, StaleAttempt
from fenceline.model.outcome import Outcome

if TYPE_CHECKING:
    from fenceline.context.batch_part import BatchPart


class BatchTransaction(Transaction):
    def __init__(self, parts: "Sequence[BatchPart]") -> None:
        first = parts[0].session
        super().__init__(first, Context(first))
        self._parts = parts
        self._outcomes: list[Outcome] = []
        self._gone: Sequence[BatchPart] = ()

    @contextmanager
    def _as_open(self, own: TransactionConnection) -> Iterator[None]:
        if any(part.session.transaction_done is not None for part in self._parts):
            raise StaleAttempt("the jobs of the batch have ended with its transaction: nothing can be written any more")
        with super()._as_open(own):
            yield
        if own.result is not None or own.errors is not None:
            raise InvalidOption("a batch has no result: give each job its own with item.succeed(result)")

    def _set_ending(self, *, is_ending: bool) -> None:
        for part in self._parts:
            part.session.set_ending(is_ending=is_ending)

    async def _flush(self) -> None:
        await asyncio.gather(*(part.session.flush() for part in self._parts if part.session.has_report))

    def _finish(self, own: TransactionConnection) -> Call[Any]:  # noqa: ARG002 - each job has its own result
        endings = [part.ending() for part in self._parts]
        self._outcomes = [ending.outcome for ending in endings]
        return calls.attempts.finish_together(columns_of(endings))

    def _accept(self, verdict: Any) -> None:
        """`verdict`: the attempts that were refused."""
        self._gone = [part for part in self._parts if str(part.session.attempt.attempt_id) in verdict]
        if self._gone:
            raise StaleAttempt(
                f"{len(self._gone)} attempts of the batch are gone, that of job {self._gone[0].session.attempt.id} "
                "among them: everything was rolled back"
            )

    def _done(self) -> None:
        for part, outcome in zip(self._parts, self._outcomes, strict=True):
            part.session.transaction_done = outcome

    async def _tell_stale(self) -> None:
        for part in self._gone:
            await part.session.tell_stale()
