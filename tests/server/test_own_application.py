"""Routes of somebody's own application answer what the queue refuses as the server does."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from fenceline import Fenceline, JobFailed, NotFound
from fenceline.server.problems import answer_problems


@pytest.fixture
async def queue(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database) as queue:
        yield queue


@pytest.fixture
async def client(queue: Fenceline) -> AsyncIterator[httpx.AsyncClient]:
    web = FastAPI()
    answer_problems(web)

    @web.get("/jobs/{job_id}")
    async def show(job_id: str) -> str:
        return (await queue.jobs.get(job_id)).status

    @web.post("/tables/{table}")
    async def maintain(table: str) -> str:
        if table == "missing":
            raise NotFound(f"there is no table {table!r}")
        return (await queue.enqueue("maintain", resource_lock=f"table:{table}")).id

    @web.get("/broken")
    async def broken() -> None:
        raise JobFailed("not for the caller to see")

    transport = httpx.ASGITransport(web, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://web") as client:
        yield client


async def test_refusals_are_problems_with_their_codes(queue: Fenceline, client: httpx.AsyncClient) -> None:
    holder = (await client.post("/tables/orders")).json()
    assert (await client.get(f"/jobs/{holder}")).json() == "queued"
    for path in ("/jobs/not-an-id", "/jobs/0AHZ-DNNY-G000-4VS"):
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = await client.post("/tables/missing")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no table 'missing'")
    answer = await client.post("/tables/orders")
    assert (answer.status_code, answer.json()["code"], answer.json()["holder"]) == (409, "resource_locked", holder)
    assert answer.headers["content-type"] == "application/problem+json"
    await queue.system.drain()
    answer = await client.post("/tables/customers")
    assert (answer.status_code, answer.json()["code"]) == (503, "draining")
    assert int(answer.headers["retry-after"]) > 0


async def test_what_is_no_refusal_stays_a_mistake(client: httpx.AsyncClient) -> None:
    answer = await client.get("/broken")
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
