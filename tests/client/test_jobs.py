"""Lists of jobs: every filter, the cursor, and all pages in one loop."""

import asyncio
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.client.conftest import Worker

from fenceline import Fenceline, InvalidArgs, InvalidId, Status
from fenceline.errors import InvalidOption


@pytest.fixture
async def jobs(app: Fenceline, worker: Worker) -> dict[str, str]:
    """Seven jobs, each different from the first in one way; the id of each by what is special about it."""
    done = await app.enqueue("work")
    await worker.run(done)
    made = {
        "done": done,
        "plain": await app.enqueue("work"),
        "kind": await app.enqueue("other"),
        "lane": await app.enqueue("work", lane="interactive"),
        "tenant": await app.enqueue("work", tenant="acme"),
        "label": await app.enqueue("work", labels={"a": "1"}),
        "labels": await app.enqueue("work", labels={"a": "1", "b": "2"}),
    }
    return {name: job.id for name, job in made.items()}


@pytest.mark.parametrize(
    "filters, found",
    [
        ({}, ["labels", "label", "tenant", "lane", "kind", "plain", "done"]),
        ({"status": "succeeded"}, ["done"]),
        ({"status": Status.SUCCEEDED}, ["done"]),
        (
            {"status": ["succeeded", "queued"], "kind": ["work"], "tenant": "default"},
            ["labels", "label", "lane", "plain", "done"],
        ),
        ({"kind": "other"}, ["kind"]),
        ({"kind": ["other", "nothing"]}, ["kind"]),
        ({"lane": "interactive"}, ["lane"]),
        ({"lane": ("interactive", "maintenance")}, ["lane"]),
        ({"tenant": "acme"}, ["tenant"]),
        ({"tenant": ["acme", "default"], "status": "succeeded"}, ["done"]),
        ({"labels": {"a": "1"}}, ["labels", "label"]),
        ({"labels": {"a": "1", "b": "2"}}, ["labels"]),
        ({"labels": {"a": "2"}}, []),
        ({"status": []}, []),
        ({"status": "failed"}, []),
        ({"limit": 2}, ["labels", "label"]),
    ],
)
async def test_filters(app: Fenceline, jobs: dict[str, str], filters: dict[str, Any], found: list[str]) -> None:
    page = await app.jobs.list(**filters)

    names = {job_id: name for name, job_id in jobs.items()}
    assert [names[record.id] for record in page.items] == found
    each = [names[record.id] async for record in app.jobs.each(**filters)] if "limit" not in filters else found
    assert each == found


async def test_by_time(app: Fenceline) -> None:
    ids, times = [], []
    for _ in range(3):
        job = await app.enqueue("work")
        ids.append(job.id)
        times.append((await job.get()).created_at)
        await asyncio.sleep(0.02)

    async def between(after: datetime | None, before: datetime | None) -> list[str]:
        page = await app.jobs.list(created_after=after, created_before=before)
        each = [record async for record in app.jobs.each(created_after=after, created_before=before)]
        assert each == page.items
        return [record.id for record in page.items]

    middle = times[0] + (times[1] - times[0]) / 2
    later = times[1] + (times[2] - times[1]) / 2
    assert await between(middle, None) == [ids[2], ids[1]]
    assert await between(None, middle) == [ids[0]]
    assert await between(middle, later) == [ids[1]]


async def test_the_cursor_leads_through_all_pages(app: Fenceline) -> None:
    made = [(await app.enqueue("work", {"n": n})).id for n in range(7)]

    seen: list[str] = []
    cursor: str | None = None
    pages = 0
    while True:
        page = await app.jobs.list(limit=3, cursor=cursor)
        seen += [record.id for record in page.items]
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == made[::-1]
    assert 3 <= pages <= 4


async def test_each_goes_on_over_more_than_one_page(app: Fenceline) -> None:
    @app.job()
    async def work(n: int) -> None: ...

    await work.enqueue_many({"n": n} for n in range(1203))

    assert [record.args["n"] async for record in app.jobs.each()] == list(range(1203))[::-1]
    assert [record.args["n"] for record in app.sync.jobs.each()] == list(range(1203))[::-1]


@pytest.mark.parametrize(
    "filters, error",
    [
        ({"status": "done"}, InvalidOption),
        ({"limit": 0}, InvalidOption),
        ({"limit": 1001}, InvalidOption),
        ({"limit": "ten"}, InvalidOption),
        ({"cursor": "nonsense"}, InvalidId),
        ({"created_after": "yesterday"}, InvalidOption),
    ],
)
async def test_filters_that_make_no_sense(app: Fenceline, filters: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await app.jobs.list(**filters)


async def test_a_number_that_python_cannot_read_does_not_spoil_the_list(app: Fenceline, worker: Worker) -> None:
    """Another language may have stored it; Python itself refuses to send one."""
    await worker.connection.fetch("select fenceline.enqueue('work', ('{\"n\": ' || repeat('9', 5000) || '}')::json)")
    with pytest.raises(InvalidArgs, match="more than 4300 digits"):
        await app.enqueue("work", {"n": 10**5000})

    [record] = (await app.jobs.list()).items
    assert record.args["n"] == Decimal(10**5000 - 1)
    assert type(record.attempt) is int
