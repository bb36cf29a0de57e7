"""Waiting for jobs to end: any number of waiters share one connection and a few statements.

A notification (`fenceline_ended`) brings the news at once; polling is the truth that makes it safe. The database is
told which jobs are watched, because it notifies only where somebody waits. While nothing changes, one statement per
second asks for all of them together. A listening connection that breaks is replaced; until then polling carries on.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fenceline.database import calls
from fenceline.database.calls import Call
from fenceline.errors import DatabaseUnavailable
from fenceline.model.job import Outcome

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

T = TypeVar("T")

CHANNEL = "fenceline_ended"
POLL_SECONDS = 1.0
# A job may end just before the watch is visible to whoever ends it: one more look comes soon.
SECOND_LOOK_SECONDS = 0.1
WATCH_SECONDS = 60.0
# A room nobody waits in gives its connection back after so long.
LINGER_SECONDS = 10.0
RECONNECT_SECONDS = 1.0


class RunCall(Protocol):
    def __call__(self, call: Call[T], /) -> Awaitable[T]: ...


class WaitingRoom:
    def __init__(self, run: RunCall, connect: "Callable[[], Awaitable[Connection]]") -> None:
        self._run = run
        self._connect = connect
        self._waiting: dict[int, set[asyncio.Future[Outcome | None]]] = {}
        self._unwatched: set[int] = set()
        self._ended: set[int] = set()
        self._news = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def wait(self, job_id: int, timeout: float | None) -> Outcome | None:
        """How the job ended; None when it does not exist. Raises TimeoutError."""
        future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        if job_id not in self._waiting:
            self._waiting[job_id] = set()
            self._unwatched.add(job_id)
            self._news.set()
        self._waiting[job_id].add(future)
        if self._serving is None or self._serving.done():
            self._listening = asyncio.create_task(self._listen(), name="fenceline listener")
            self._serving = asyncio.create_task(self._serve(self._listening), name="fenceline waiting room")
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
        # Nothing is awaited between the last look at the waiters and the end: who comes later finds the task done.
        try:
            await self._answer_until_empty()
        except asyncio.CancelledError:
            self._fail(DatabaseUnavailable("the client was closed while the job was awaited"))
            raise
        except Exception as error:  # noqa: BLE001 - it is theirs who wait
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
        while True:
            lost = asyncio.Event()
            connection: Connection | None = None
            # Without a listener the room goes on by polling, and that says what is wrong with the database.
            with contextlib.suppress(Exception):
                try:
                    connection = await self._connect()
                    connection.add_termination_listener(lambda _connection, lost=lost: lost.set())
                    await connection.add_listener(CHANNEL, self._on_ended)
                    # What ended while nobody listened was told to nobody.
                    self._ended.update(self._waiting)
                    self._news.set()
                    if not connection.is_closed():
                        await lost.wait()
                finally:
                    if connection is not None:
                        connection.terminate()
            await asyncio.sleep(RECONNECT_SECONDS)

    def _on_ended(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        self._ended.update(int(part) for part in str(payload).split(",") if part.isdecimal())
        self._news.set()

    async def _answer_until_empty(self) -> None:
        second_looks: deque[tuple[float, set[int]]] = deque()
        now = busy_at = time.monotonic()
        poll_at, watch_at = now + POLL_SECONDS, now + WATCH_SECONDS / 2
        while self._waiting or now < busy_at + LINGER_SECONDS:
            self._news.clear()
            if now >= watch_at:
                self._unwatched.update(self._waiting)
                watch_at = now + WATCH_SECONDS / 2
            asked, self._ended = self._ended, set()
            new, self._unwatched = self._unwatched & self._waiting.keys(), set()
            if new:
                await self._run(calls.watch_jobs(list(new), WATCH_SECONDS))
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
            await self._rest(until=min(poll_at, second_looks[0][0]) if second_looks else poll_at)
            now = time.monotonic()

    async def _rest(self, *, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._news.wait()

    async def _answer(self, job_ids: list[int]) -> None:
        for job_id, outcome in (await self._run(calls.outcomes(job_ids))).items():
            for future in self._waiting.pop(job_id, ()):
                if not future.done():
                    future.set_result(outcome)
