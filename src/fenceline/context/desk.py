"""Where the wishes of a running handler go: each place where handlers run has a desk of its own."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar
from uuid import UUID

from fenceline.context.attempt import Report
from fenceline.database import context_calls
from fenceline.database.calls import Call
from fenceline.errors import ConnectionLost, RefusedError
from fenceline.model.public_id import format_id

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")


class RunCall(Protocol):
    def __call__(self, call: Call[T], /) -> Awaitable[T]: ...


class Desk(Protocol):
    @property
    def has_database(self) -> bool:
        """Whether the app can be used to reach the database from here."""
        ...

    async def ask(self, job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        """Carry out an operation of `context_calls.OPERATIONS`. Raises RefusedError, StaleAttempt among them."""
        ...

    async def start_json(self, job_id: int) -> dict[str, Any]:
        """What earlier attempts and other jobs left: see `Start`."""
        ...

    async def snapshot_hash(self, snapshot: str) -> str:
        """The hash of a configuration, given as JSON text."""
        ...

    async def report(self, job_id: int, attempt_id: UUID, report: Report) -> None:
        """Write lines and progress now."""
        ...

    async def woken(self, block: str, seconds: float) -> None:
        """Until it is the turn of a block that waits for a lock, or so many seconds have passed."""
        ...


class SqlDesk:
    """A desk with a line to the database."""

    has_database = True

    def __init__(self, run: RunCall) -> None:
        self._run = run
        self._waiting: dict[str, asyncio.Event] = {}

    async def ask(self, job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        # The line is shared: a handler that is cancelled in the middle must not cut the others off.
        asked = asyncio.ensure_future(self._run(context_calls.OPERATIONS[operation](job_id, attempt_id, **values)))
        asked.add_done_callback(self._hear_next if operation == "release_lock" else _look_at)
        return await asyncio.shield(asked)

    async def start_json(self, job_id: int) -> dict[str, Any]:
        return await self._run(context_calls.attempt_start(job_id))

    async def snapshot_hash(self, snapshot: str) -> str:
        return await self._run(context_calls.snapshot_hash(snapshot))

    async def report(self, job_id: int, attempt_id: UUID, report: Report) -> None:
        call = context_calls.report_attempts([job_id], [attempt_id], [report.lines or None], [report.progress])
        try:
            await self._run(call)
        except (ConnectionLost, RefusedError) as error:  # lines are worth less than the work that they tell of
            log.warning("job %s: lines of its log may be lost: %s", format_id(job_id), error)

    async def woken(self, block: str, seconds: float) -> None:
        event = self._waiting[block] = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            del self._waiting[block]

    def hear_lock(self, block: str) -> None:
        """A notification: it is this block's turn."""
        event = self._waiting.get(block)
        if event is not None:
            event.set()

    def _hear_next(self, asked: "asyncio.Future[Any]") -> None:
        """Within one process a lock changes hands at once, also where notifications do not come through."""
        if not asked.cancelled() and asked.exception() is None and asked.result() is not None:
            self.hear_lock(asked.result())


def _look_at(asked: "asyncio.Future[Any]") -> None:
    if not asked.cancelled():
        asked.exception()  # whoever asked may be gone
