"""`job.watch()` and `app.watch()`: the latest state, and every log line."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.client.conftest import Worker
from tests.support.patience import eventually, seconds_left

from fenceline import Fenceline, NotFound, WatchEvent
from fenceline.model.public_id import format_id, parse_id


async def log(worker: Worker, job_id: str, attempt: object, message: str) -> None:
    lines = f'[{{"message": "{message}"}}]'
    await worker.connection.execute(
        "select fenceline.write_log(fenceline.parse_public_id($1), $2, $3::jsonb)", job_id, attempt, lines
    )


async def report(worker: Worker, job_id: str, attempt: object, phase: str) -> None:
    await worker.connection.execute(
        "select fenceline.set_progress(fenceline.parse_public_id($1), $2, $3)", job_id, attempt, phase
    )


@contextlib.asynccontextmanager
async def gathering(events: AsyncIterator[WatchEvent], into: list[WatchEvent]) -> AsyncIterator["asyncio.Task[None]"]:
    async def gather() -> None:
        async for event in events:
            into.append(event)  # noqa: PERF401 - others look at what is there so far

    task = asyncio.create_task(gather())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(seen: list[WatchEvent], *wanted: str) -> None:
    async def all_seen() -> bool:
        return set(wanted) <= {name for event in seen for name in (short(event), event.id)}

    await eventually(all_seen, f"the events {wanted}", lambda: seen)


def short(event: WatchEvent) -> str:
    match event.event:
        case "status":
            assert event.job is not None
            return f"{event.job.kind} {event.job.status}"
        case "progress":
            return f"phase {event.phase}"
        case _:
            assert event.line is not None
            return event.line.message


async def test_a_job_from_its_beginning_to_its_end(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    seen: list[WatchEvent] = []
    async with gathering(job.watch(), seen) as watching:
        await until(seen, "work queued")
        attempt = await worker.start(job)
        await report(worker, job.id, attempt, "load")
        await log(worker, job.id, attempt, "one")
        await until(seen, "work claimed", "phase load", "one")
        await log(worker, job.id, attempt, "two")
        await worker.finish(parse_id(job.id), attempt)
        await asyncio.wait_for(watching, seconds_left())
    assert [short(event) for event in seen][-2:] == ["two", "work succeeded"]
    assert {event.id for event in seen} == {job.id}


async def test_one_that_has_ended_is_told_whole(app: Fenceline, worker: Worker) -> None:
    job = await app.enqueue("work")
    attempt = await worker.start(job)
    for number in range(3):
        await log(worker, job.id, attempt, f"line {number}")
    await worker.finish(parse_id(job.id), attempt)
    told = [short(event) async for event in job.watch()]
    assert told == ["line 0", "line 1", "line 2", "work succeeded"]
    assert [short(event) for event in app.sync.jobs.handle(job.id).watch()] == told


async def test_a_job_that_is_not_there(app: Fenceline) -> None:
    with pytest.raises(NotFound):
        await anext(app.jobs.handle(format_id(1)).watch())


async def test_all_that_match(app: Fenceline, worker: Worker) -> None:
    before = await app.enqueue("mail")
    await app.enqueue("other")
    seen: list[WatchEvent] = []
    async with gathering(app.watch(kind="mail"), seen):
        await until(seen, "mail queued")
        await app.enqueue("other")
        attempt = await worker.start(before)
        await report(worker, before.id, attempt, "send")
        await log(worker, before.id, attempt, "sending")
        await worker.finish(parse_id(before.id), attempt)
        later = await app.enqueue("mail")
        await until(seen, "mail succeeded", "sending", later.id)
    told = [short(event) for event in seen]
    assert not any(text.startswith("other") for text in told)
    assert told.count("sending") == 1
