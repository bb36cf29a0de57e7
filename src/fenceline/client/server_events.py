"""Watching jobs over HTTP: the server's streams as the events of `job.watch()` and `app.watch()`.

    async for event in watch_server("https://queue.example", token, job_id="01HQ-3KBR-T5GN-8WX"): ...
    async for event in watch_server("https://queue.example", token, status="failed", label="project:x"): ...

Needs httpx (`pip install 'fenceline[cli]'`).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx

from fenceline.database.decoding import read_record
from fenceline.errors import FencelineError, NotFound
from fenceline.model.job import JobRecord, LogLine
from fenceline.model.records import WatchEvent

RECONNECT_SECONDS = 1.0
#: The server sends a comment every 15 seconds.
SILENT_SECONDS = 45.0


async def watch_server(
    url: str, token: str | None = None, *, job_id: str | None = None, **filters: str | Sequence[str]
) -> AsyncIterator[WatchEvent]:
    """One job until it ends, or every job that matches the filters of `GET /v1/stream`, without end.

    A broken connection resumes where it broke. Raises NotFound, or FencelineError if the server refuses.
    """
    path = "/v1/stream" if job_id is None else f"/v1/jobs/{job_id}/stream"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    last: str | None = None
    timeout = httpx.Timeout(10.0, read=SILENT_SECONDS)
    async with httpx.AsyncClient(base_url=url.rstrip("/"), headers=headers, timeout=timeout) as client:
        while True:
            resume = {} if last is None else {"Last-Event-ID": last}
            try:
                async with client.stream("GET", path, params=filters, headers=resume) as answer:
                    if answer.status_code == httpx.codes.NO_CONTENT:
                        return  # the job has ended, and every event was sent
                    if answer.is_client_error:
                        raise await _refusal(answer)
                    answer.raise_for_status()
                    async for name, place, data in _events(answer.aiter_lines()):
                        last = place or last
                        if name is not None:
                            event = _event(name, json.loads(data))
                            yield event
                            if job_id is not None and event.job is not None and event.job.status.is_final:
                                return
            except httpx.HTTPError:
                pass  # briefly away, or restarted: resume after the last event
            await asyncio.sleep(RECONNECT_SECONDS)


async def _refusal(answer: httpx.Response) -> FencelineError:
    problem = json.loads(await answer.aread())
    message = str(problem.get("detail") or problem.get("title"))
    return NotFound(message) if problem.get("code") == "not_found" else FencelineError(message)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str | None, str | None, str]]:
    """The name, id and data of each event; without a name it is only an id."""
    name: str | None = None
    place: str | None = None
    data: list[str] = []
    async for line in lines:
        if not line:
            if name is not None or place is not None:
                yield name, place, "\n".join(data)
            name, place, data = None, None, []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                name = value
            case "id":
                place = value
            case "data":
                data.append(value)


def _event(name: str, data: dict[str, Any]) -> WatchEvent:
    match name:
        case "status":
            return WatchEvent(event="status", id=data["id"], job=read_record(JobRecord, data))
        case "progress":
            return WatchEvent(
                event="progress", id=data["id"], attempt=data["attempt"], phase=data["phase"], progress=data["progress"]
            )
        case _:
            line = {key: value for key, value in data.items() if key != "id"}
            return WatchEvent(event="log", id=data["id"], line=read_record(LogLine, line))
