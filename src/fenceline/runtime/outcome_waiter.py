"""Waiting for jobs to end: any number of waiters share one connection and a few statements.

A notification (`fenceline_ended`) wakes them at once; polling makes it safe. The database is told which jobs are
watched, because it notifies only if somebody waits. While nothing changes, one statement per second asks about all of
them. A listening connection that breaks is replaced, and polling carries on until then.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fenceline.database import calls
from fenceline.database.call import RunCall
from fenceline.errors import DatabaseUnavailable
from fenceline.model.job import JobOutcome
from fenceline.runtime.alarms import FalseAlarms, read_ids
from fenceline.runtime.waiting import wait_for_event

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

CHANNEL = "fenceline_ended"
POLL_SECONDS = 1.0
# A job may end just before its worker can see the watch, so we soon look once more.
SECOND_LOOK_SECONDS = 0.1
WATCH_SECONDS = 60.0
# The connection is closed when nobody has waited for so long.
LINGER_SECONDS = 10.0
RECONNECT_SECONDS = 1.0


class OutcomeWaiter:
    def __init__(self, run: RunCall, connect: "Callable[[], Awaitable[Connection]] | None") -> None:
        """Without `connect`, somebody else listens and calls `on_notify`."""
        self._run = run
        self._connect = connect
        self._waiting: dict[int, set[asyncio.Future[JobOutcome | None]]] = {}
        self._unwatched: set[int] = set()
        self._ended: set[int] = set()
        self._changed = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def wait(self, job_id: int, timeout: float | None) -> JobOutcome | None:
        """How the job ended; None when it does not exist. Raises TimeoutError."""
        future: asyncio.Future[JobOutcome | None] = asyncio.get_running_loop().create_future()
        if job_id not in self._waiting:
            self._waiting[job_id] = set()
            self._unwatched.add(job_id)
            self._changed.set()
        self._waiting[job_id].add(future)
        if self._serving is None or self._serving.done():
            self._listening = asyncio.create_task(self._listen(), name="fenceline listener")
            self._serving = asyncio.create_task(self._serve(self._listening), name="fenceline waiter")
        try:
            async with asyncio.timeout(timeout):
                return await future
        finally:
            waiters = self._waiting.get(job_id)
            if waiters is not None:
                waiters.discard(future)
                if not waiters:
                    del self._waiting[job_id]

    async def close(self) -> None:
        tasks = [task for task in (self._serving, self._listening) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, listening: asyncio.Task[None]) -> None:
        # Nothing is awaited between the last look at the waiters and the end, so latecomers find the task done.
        try:
            await self._answer_until_empty()
        except asyncio.CancelledError:
            self._fail(DatabaseUnavailable("the client was closed while the job was awaited"))
            raise
        except Exception as error:  # noqa: BLE001 - it goes to those who wait
            self._fail(error)
        finally:
            listening.cancel()

    def _fail(self, error: Exception) -> None:
        for waiters in self._waiting.values():
            for future in waiters:
                if not future.done():
                    future.set_exception(error)
        self._waiting.clear()

    async def _listen(self) -> None:
        while self._connect is not None:
            lost = asyncio.Event()
            connection: Connection | None = None
            # Without a listener polling goes on, and that reports what is wrong with the database.
            with contextlib.suppress(Exception):
                try:
                    connection = await self._connect()
                    connection.add_termination_listener(lambda _connection, lost=lost: lost.set())
                    await connection.add_listener(CHANNEL, lambda *message: self.on_notify(str(message[-1])))
                    # Jobs that ended while nobody listened were not announced.
                    self._ended.update(self._waiting)
                    self._changed.set()
                    if not connection.is_closed():
                        await lost.wait()
                finally:
                    if connection is not None:
                        connection.terminate()
            await asyncio.sleep(RECONNECT_SECONDS)

    def on_notify(self, payload: str) -> None:
        """A notification: ids separated by commas."""
        self._ended |= read_ids(payload)
        self._changed.set()

    async def _answer_until_empty(self) -> None:
        second_looks: deque[tuple[float, set[int]]] = deque()
        now = busy_at = time.monotonic()
        poll_at, watch_at = now + POLL_SECONDS, now + WATCH_SECONDS / 2
        alarms = FalseAlarms()
        while self._waiting or now < busy_at + LINGER_SECONDS:
            self._changed.clear()
            if now >= watch_at:
                self._unwatched.update(self._waiting)
                watch_at = now + WATCH_SECONDS / 2
            asked, self._ended = self._ended & self._waiting.keys(), set()
            heard = frozenset(asked)
            new, self._unwatched = self._unwatched & self._waiting.keys(), set()
            if new:
                await self._run(calls.jobs.watch_jobs(list(new), WATCH_SECONDS))
                asked |= new
                second_looks.append((now + SECOND_LOOK_SECONDS, new))
            while second_looks and second_looks[0][0] <= now:
                asked |= second_looks.popleft()[1]
            if now >= poll_at:
                asked.update(self._waiting)
                poll_at = now + POLL_SECONDS
            asked &= self._waiting.keys()
            if asked:
                await self._answer(list(asked))
                busy_at = now
            if heard:
                alarms.count(false=heard <= self._waiting.keys())
                await asyncio.sleep(alarms.pause_seconds)
            rest_until = min(poll_at, second_looks[0][0]) if second_looks else poll_at
            await wait_for_event(self._changed, max(0.0, rest_until - time.monotonic()))
            now = time.monotonic()

    async def _answer(self, job_ids: list[int]) -> None:
        for job_id, outcome in (await self._run(calls.jobs.outcomes(job_ids))).items():
            for future in self._waiting.pop(job_id, ()):
                if not future.done():
                    future.set_result(outcome)
