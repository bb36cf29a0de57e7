"""Waiting for jobs to end: any number of waiters share one connection and a few statements.

A notification (`fenceline_ended`) brings the news at once; polling is the truth that makes it safe. The database is
told which jobs are watched, because it notifies only where somebody waits. While nothing changes, one statement per
second asks for all of them together.
"""

import asyncio
import contextlib
import time
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
# A job may end just before the watch is visible: the first looks come quickly.
FIRST_POLLS_SECONDS = (0.05, 0.25)
WATCH_SECONDS = 60.0
# A room nobody waits in gives its connection back after so long.
LINGER_SECONDS = 10.0


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
        self._task: asyncio.Task[None] | None = None

    async def wait(self, job_id: int, timeout: float | None) -> Outcome | None:
        """How the job ended; None when it does not exist. Raises TimeoutError."""
        future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        if job_id not in self._waiting:
            self._waiting[job_id] = set()
            self._unwatched.add(job_id)
        self._waiting[job_id].add(future)
        self._news.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._serve(), name="fenceline waiting room")
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
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _serve(self) -> None:
        listener: Connection | None = None
        try:
            listener = await self._listen()
            await self._answer_until_empty()
        except BaseException as error:
            for waiters in self._waiting.values():
                for future in waiters:
                    if not future.done():
                        future.set_exception(
                            error
                            if isinstance(error, Exception)
                            else DatabaseUnavailable("the client was closed while the job was awaited")
                        )
            if not isinstance(error, Exception):
                raise
        finally:
            if listener is not None:
                listener.terminate()

    async def _listen(self) -> "Connection | None":
        connection = await self._connect()
        await connection.add_listener(CHANNEL, self._on_ended)
        return connection

    def _on_ended(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        self._ended.update(int(part) for part in str(payload).split(","))
        self._news.set()

    async def _answer_until_empty(self) -> None:
        early = iter(FIRST_POLLS_SECONDS)
        now = busy_at = poll_at = watch_at = time.monotonic()
        while self._waiting or now < busy_at + LINGER_SECONDS:
            if now >= watch_at:
                self._unwatched.update(self._waiting)
                watch_at = now + WATCH_SECONDS / 2
            if self._unwatched:
                asked, self._unwatched = self._unwatched & self._waiting.keys(), set()
                await self._run(calls.watch_jobs(list(asked), WATCH_SECONDS))
                early = iter(FIRST_POLLS_SECONDS)
                poll_at = now + next(early)
            elif now >= poll_at:
                asked = set(self._waiting)
                poll_at = now + next(early, POLL_SECONDS)
            else:
                asked, self._ended = self._ended & self._waiting.keys(), set()
            if asked:
                await self._answer(list(asked))
                busy_at = now
            await self._rest(until=poll_at)
            now = time.monotonic()

    async def _rest(self, *, until: float) -> None:
        self._news.clear()
        if not self._unwatched and not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    await self._news.wait()

    async def _answer(self, job_ids: list[int]) -> None:
        for job_id, outcome in (await self._run(calls.outcomes(job_ids))).items():
            for future in self._waiting.get(job_id, ()):
                if not future.done():
                    future.set_result(outcome)
