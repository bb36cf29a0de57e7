"""A server with sockets, clients that watch its streams, and somebody who does the jobs when a test says so."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

import asyncpg
import httpx
import uvicorn
from fastapi import FastAPI
from tests.support.patience import give_up, seconds_left

from fenceline.model.public_id import format_id, parse_id
from fenceline.server.listening import uvicorn_config

Json = dict[str, Any]


@contextlib.asynccontextmanager
async def serving(api: FastAPI) -> AsyncIterator[str]:
    """The application behind a real port, in this event loop; its URL."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = uvicorn.Server(uvicorn_config(api, lifespan="off", timeout_graceful_shutdown=1))
    config = server.config
    config.load()
    server.lifespan = config.lifespan_class(config)
    task = asyncio.create_task(server.main_loop())
    await server.startup(sockets=[listening])
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        api.state.server.hub.close()
        await server.shutdown(sockets=[listening])


@dataclass(frozen=True, slots=True)
class Event:
    event: str
    id: str
    data: Json


class Watcher:
    """Reads a stream in the background."""

    def __init__(self, client: httpx.AsyncClient, path: str, last_event_id: str | None = None) -> None:
        self._client = client
        self._path = path
        self._headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        self.events: list[Event] = []
        self.comments: list[str] = []
        self.last_id: str | None = last_event_id
        self.status = 0
        self.ended = False
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read())
        await self.until(lambda: self.status != 0)
        return self

    async def __aexit__(self, *_why: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _read(self) -> None:
        try:
            async with self._client.stream("GET", self._path, headers=self._headers, timeout=None) as response:
                self.status = response.status_code
                self._came.set()
                fields: dict[str, str] = {}
                async for line in response.aiter_lines():
                    if line.startswith(":"):
                        self.comments.append(line[1:].strip())
                    elif line:
                        name, _, value = line.partition(": ")
                        fields[name] = value
                    else:
                        self._dispatch(fields)
                        fields = {}
                    self._came.set()
        finally:
            self.ended = True
            self._came.set()

    def _dispatch(self, fields: dict[str, str]) -> None:
        self.last_id = fields.get("id", self.last_id)
        if "data" in fields:
            self.events.append(Event(fields["event"], fields["id"], json.loads(fields["data"])))

    async def until(self, met: Callable[[], bool]) -> None:
        """Wait until a condition about what was read holds; nothing more is read once the stream has ended."""
        try:
            async with asyncio.timeout(seconds_left()):
                while not met():
                    assert not self.ended, f"the stream ended before: {self._seen()}"
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            give_up(f"what {self._path} should show", self._seen())

    def _seen(self) -> str:
        return f"{self.status} {self.events} {self.comments}"

    def of(self, event: str) -> list[Json]:
        return [seen.data for seen in self.events if seen.event == event]

    @property
    def statuses(self) -> list[str]:
        return [data["status"] for data in self.of("status")]

    @property
    def messages(self) -> list[str]:
        return [data["message"] for data in self.of("log")]


class Work:
    """Claims, reports and finishes by SQL, one call at a time."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", worker_id: int) -> None:
        self.connection = connection
        self.worker_id = worker_id
        self.attempts: dict[str, UUID] = {}

    @classmethod
    async def start(cls, connection: "asyncpg.Connection[asyncpg.Record]") -> Self:
        worker_id = await connection.fetchval("select fenceline.register_worker('by-hand', 3600)")
        return cls(connection, worker_id)

    async def enqueue(self, kind: str = "work", **options: Any) -> str:
        job_id = await self.connection.fetchval(
            "select job_id from fenceline.enqueue($1, '{}', $2)", kind, json.dumps(options)
        )
        return format_id(job_id)

    async def claim(self, lane: str = "default", limit: int = 1) -> list[str]:
        rows = await self.connection.fetch(
            "select job_id, attempt_id from fenceline.claim_jobs($1, $2, $3)", self.worker_id, lane, limit
        )
        self.attempts |= {format_id(row["job_id"]): row["attempt_id"] for row in rows}
        return [format_id(row["job_id"]) for row in rows]

    async def start_attempt(self, job: str) -> None:
        await self.connection.fetch(
            "select * from fenceline.start_attempts($1, $2)", [parse_id(job)], [self.attempts[job]]
        )

    async def log(self, job: str, *messages: str) -> None:
        lines = json.dumps([{"message": message} for message in messages])
        assert await self.connection.fetchval(
            "select fenceline.write_log($1, $2, $3)", parse_id(job), self.attempts[job], lines
        )

    async def progress(self, job: str, phase: str | None = None, **progress: Any) -> None:
        assert await self.connection.fetchval(
            "select fenceline.set_progress($1, $2, $3, $4)",
            parse_id(job), self.attempts[job], phase, json.dumps(progress),
        )  # fmt: skip

    async def finish(self, job: str, outcome: str = "succeeded", result: Any = None, error: Json | None = None) -> None:
        verdict = await self.connection.fetchval(
            "select fenceline.finish_attempt($1, $2, $3, $4, $5)",
            parse_id(job), self.attempts.pop(job), outcome, json.dumps(result),
            None if error is None else json.dumps(error),
        )  # fmt: skip
        assert verdict == "accepted"

    async def run(self, kind: str = "work", outcome: str = "succeeded", **options: Any) -> str:
        """Enqueue, claim and finish."""
        job = await self.enqueue(kind, **options)
        assert await self.claim() == [job]
        await self.finish(job, outcome)
        return job
