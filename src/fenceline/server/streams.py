"""Live streams (server-sent events): one job to its end, or every job that matches a filter."""

import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any, Self

import anyio
from fastapi import Header, Response
from pydantic_core import from_json
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send

from fenceline.database import calls
from fenceline.model.public_id import parse_id
from fenceline.model.secret import PREFIX, hash_token
from fenceline.server.filters import JobQuery
from fenceline.server.problems import Problem, invalid
from fenceline.server.routing import ApiRequest, operation, read_job_id, router
from fenceline.server.stream_hub import Hub
from fenceline.server.subscription import (
    RETRY_MS,
    FilterStream,
    InvalidEventId,
    JobStream,
    Proof,
    Stream,
)

log = logging.getLogger("fenceline.server")

routes = router("streams")

KEEP_ALIVE_SECONDS = 15
#: After how long a client that reads nothing is disconnected.
STALLED_SECONDS = 30
FAREWELL_SECONDS = 1.0
#: How many of the newest matching jobs a stream begins with.
SHOWN_FIRST = 100

_EXAMPLE = (
    "event: status\nid: 1-0-9f2c-0\ndata: {…the job…}\n\n"
    'event: progress\nid: 1-0-9f2c-41a0\ndata: {"id": "…", "attempt": 1, "phase": "load", "progress": {"done": 3}}\n\n'
    'event: log\nid: 1-1-9f2c-41a0\ndata: {"id": "…", "token": 1, "line": 1, "message": "reading", …}\n\n'
)
_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["status", "progress", "log"]},
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
    "additionalProperties": False,
}
_EVENTS: dict[str, Any] = {
    "description": "Events `status` (the job), `progress` and `log`; comments keep the connection alive.",
    "content": {"text/event-stream": {"schema": _EVENT, "example": _EXAMPLE}},
}
LastEventId = Annotated[
    str | None,
    Header(description="The id of the last event you received; the stream continues after it.", max_length=200),
]


class Farewell(anyio.Event):
    """Set when the server is told to stop: the stream then ends properly, and its client reconnects elsewhere."""

    def __new__(cls, stream: Stream) -> Self:  # noqa: ARG004 - anyio.Event() creates an event of the running backend
        return object.__new__(cls)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def set(self) -> None:
        self._stream.close("the server stops")

    def is_set(self) -> bool:
        return self._stream.closed


class StreamResponse(EventSourceResponse):
    """Server-sent events for one client of the hub."""

    def __init__(self, hub: Hub, stream: Stream, events: AsyncIterator[bytes]) -> None:
        super().__init__(
            _starting(events),
            ping=KEEP_ALIVE_SECONDS,
            sep="\n",
            send_timeout=STALLED_SECONDS,
            shutdown_event=Farewell(stream),
            shutdown_grace_period=FAREWELL_SECONDS,
        )
        self._hub = hub
        self._client = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._hub.start(self._client)
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            log.info("a stream was closed: its client took nothing for %s s", STALLED_SECONDS)
        finally:
            self._hub.drop(self._client)


async def _starting(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    async for chunk in events:
        yield chunk
        del chunk
        yield b""  # the sender keeps the last chunk until the next comes: a job's whole state, for every idle client


@routes.get(
    "/v1/jobs/{id}/stream",
    **operation(
        "jobs:read", "not_found",
        answers={200: _EVENTS, 204: {"description": "The job has ended and everything was sent: do not reconnect."}},
    ),
)  # fmt: skip
async def stream_job(request: ApiRequest, id: str, last_event_id: LastEventId = None) -> Response:
    """Watch a job live: its latest state, and every log line from the first. Ends with the job's final status."""
    hub = request.server.hub
    job_id = await request.call(calls.jobs.visible_job_id(read_job_id(id), request.identity))
    try:
        stream = JobStream(job_id, _proof(request), last_event_id)
    except InvalidEventId as error:
        raise _wrong_id() from error
    with hub.admitted(stream):
        await hub.look(stream)
    if stream.ended and stream.is_empty:
        hub.drop(stream)
        return Response(status_code=204)
    return StreamResponse(hub, stream, _job_events(hub, stream))


async def _job_events(hub: Hub, stream: JobStream) -> AsyncIterator[bytes]:
    while True:
        while stream.is_behind and not stream.closed:
            yield stream.take()
            await hub.look(stream)
        if not stream.closed:
            hub.subscribe(stream)
        async for chunk in stream.chunks():
            yield chunk
            del chunk
        hub.unsubscribe(stream)
        if stream.closed:
            return


@routes.get("/v1/stream", **operation("jobs:read", answers={200: _EVENTS}))
async def stream_jobs(request: ApiRequest, filters: JobQuery, last_event_id: LastEventId = None) -> Response:
    """Watch every job that matches, filtered as in `GET /v1/jobs`: first the newest jobs, then every change.

    Log lines are those written from now on. Values of more than 16 KiB are cut, as in lists; a single job's stream has
    them in full.
    """
    hub = request.server.hub
    stream = FilterStream(filters, _proof(request))
    try:
        wanted = None if not last_event_id else FilterStream.read_event_id(last_event_id)
    except InvalidEventId as error:
        raise _wrong_id() from error
    first: list[int] = []
    with hub.admitted(stream):
        await hub.start_journal(stream)
        if wanted is None or not await hub.resume(stream, wanted):
            await hub.begin(stream)
            newest, _cursor = await request.call(
                calls.jobs.page_texts(filters, request.identity, limit=SHOWN_FIRST, cursor=None, fields=())
            )
            first = [parse_id(job["id"]) for job in reversed(from_json(newest))]
    return StreamResponse(hub, stream, _filter_events(hub, stream, first))


async def _filter_events(hub: Hub, stream: FilterStream, first: list[int]) -> AsyncIterator[bytes]:
    async for chunk in hub.show(stream, first):
        yield chunk
    while True:
        stream.is_behind = True
        while stream.is_behind and not stream.closed:
            yield stream.take()
            await hub.catch_up(stream)
        async for chunk in stream.chunks():
            yield chunk
            del chunk
        hub.unsubscribe(stream)
        if stream.closed:
            return


def _wrong_id() -> Problem:
    return invalid("Last-Event-ID", "use the id of an event of this stream")


def _proof(request: ApiRequest) -> Proof:
    authorization = request.headers.get("authorization")
    token = (authorization or "").partition(" ")[2].strip()
    if request.server.settings.no_auth:
        return Proof(request.identity)
    if request.session_secret is not None:
        return Proof(request.identity, token_hash=hash_token(request.session_secret))
    if token.startswith(PREFIX):
        return Proof(request.identity, token_hash=hash_token(token))
    return Proof(request.identity, authorization=authorization)
