"""How a running handler reaches the state machine from where it runs."""

import asyncio
import contextlib
import logging
from typing import Any, Protocol, TypeVar
from uuid import UUID

from fenceline.context.attempt import Report
from fenceline.database import calls
from fenceline.database.call import RunCall
from fenceline.errors import ConnectionLost, RefusedError, StaleAttempt
from fenceline.model.public_id import format_id
from fenceline.runtime.lock_block import Turns

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")


class AttemptApi(Protocol):
    @property
    def has_database(self) -> bool:
        """Whether the app can be used to reach the database from here."""
        ...

    async def execute(self, job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        """Carry out an operation of `calls.context.OPERATIONS`. Raises RefusedError, StaleAttempt among them."""
        ...

    async def report(self, job_id: int, attempt_id: UUID, report: Report) -> None:
        """Write lines and progress now."""
        ...

    async def wait_for_turn(self, block: str, seconds: float) -> None:
        """Wait until it is a block's turn to take its lock, for at most so many seconds."""
        ...


class SqlAttemptApi:
    """Straight to the database."""

    has_database = True

    def __init__(self, run: RunCall) -> None:
        self._run = run
        self._turns = Turns()

    async def execute(self, job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        # The connection is shared: a handler that is cancelled in the middle must not break it for the others.
        asked = asyncio.ensure_future(self._run(calls.context.OPERATIONS[operation](job_id, attempt_id, **values)))
        asked.add_done_callback(self._hear_next if operation == "release_lock" else _look_at)
        try:
            return await asyncio.shield(asked)
        except StaleAttempt:
            with contextlib.suppress(ConnectionLost, RefusedError):  # only for the job's timeline
                await self._run(calls.attempts.note_refused_writes([job_id], [attempt_id], operation))
            raise

    async def report(self, job_id: int, attempt_id: UUID, report: Report) -> None:
        call = calls.attempts.report_attempts([job_id], [attempt_id], [report.lines or None], [report.progress])
        try:
            await self._run(call)
        except (ConnectionLost, RefusedError) as error:  # lines are worth less than the work that they describe
            log.warning("job %s: lines of its log may be lost: %s", format_id(job_id), error)

    async def wait_for_turn(self, block: str, seconds: float) -> None:
        await self._turns.wait(block, seconds)

    def hear_lock(self, block: str) -> None:
        """A notification: it is this block's turn."""
        self._turns.hear(block)

    def _hear_next(self, asked: "asyncio.Future[Any]") -> None:
        """Within one process a lock changes hands at once, also where notifications do not come through."""
        if not asked.cancelled() and asked.exception() is None and asked.result() is not None:
            self.hear_lock(asked.result())


def _look_at(asked: "asyncio.Future[Any]") -> None:
    if not asked.cancelled():
        asked.exception()  # or asyncio complains, if the handler is gone and nobody looks at it
