"""Pages are bounded in bytes, not only in rows: lists carry args and results on request, and cut what is long."""

import json
from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole

from fenceline import Fenceline

MIB = 2**20
JOBS = 40
FILL = """
insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, created_by)
select fenceline.id_at(clock_timestamp()) + i, 0, 3, 'big', 'default', 'default',
       json_build_object('text', repeat(md5(i::text), 32768)), 'test'
from generate_series(1, $1::integer) i
"""
END = """
insert into fenceline.history (job_id, ended_at, token, claimed_at, worker_id, attempt_id, number, final, outcome,
                               result, error, errors)
select j.id, clock_timestamp(), 4294967297, clock_timestamp(), 1, gen_random_uuid(), 1, true, 'failed', j.args,
       jsonb_build_object('code', 'failed', 'message', repeat('long ', 10000)), jsonb_build_array(repeat('e', 40000))
from fenceline.job j
"""


@pytest.fixture
async def big_jobs(connect: Connect) -> None:
    """Jobs with args and results of 1 MiB each."""
    connection = await connect()
    await connection.execute(FILL, JOBS)
    await connection.execute(END)


async def pages(client: httpx.AsyncClient, **query: str) -> list[tuple[int, list[dict[str, Any]]]]:
    """Bytes and items of each page to the last."""
    found = []
    cursor: dict[str, str] = {}
    while True:
        answer = await client.get("/v1/jobs", params={"limit": "1000", **query, **cursor})
        assert answer.status_code == 200, answer.text[:500]
        found.append((len(answer.content), answer.json()["items"]))
        if answer.json()["next_cursor"] is None:
            return found
        cursor = {"cursor": answer.json()["next_cursor"]}


@pytest.mark.usefixtures("big_jobs")
async def test_pages_in_bytes(as_role: AsRole, queue_app: Fenceline) -> None:
    viewer = await as_role("viewer")
    [(size, items)] = await pages(viewer)
    assert len(items) == JOBS
    assert size < MIB
    assert not items[0].keys() & {"args", "result"}
    assert items[0]["error"] == {"$cut": {"bytes": 50033}, "code": "failed", "message": ("long " * 100)}
    assert items[0]["errors"] == {"$cut": {"bytes": 40004}}
    # Asked for, they are cut, and one job alone has them whole.
    [(size, items)] = await pages(viewer, fields="args,result")
    assert size < MIB
    assert items[0]["args"] == {"$cut": {"bytes": MIB + 12}} == items[0]["result"]
    whole = (await viewer.get(f"/v1/jobs/{items[0]['id']}")).json()
    assert len(whole["args"]["text"]) == MIB
    # The Python client gets them uncut, over more pages.
    seen: list[str] = []
    cursor = None
    while True:
        page = await queue_app.jobs.list(limit=1000, cursor=cursor)
        assert sum(len(job.args["text"]) for job in page.items) <= 32 * MIB
        seen += [job.id for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [item["id"] for item in items]
    assert len(set(seen)) == JOBS


async def test_a_page_ends_in_bytes_before_it_ends_in_rows(as_role: AsRole, connect: Connect) -> None:
    connection = await connect()
    await connection.execute(FILL.replace("32768", "500"), 1000)  # args of 16,000 bytes, below what is cut
    await connection.execute(END)
    viewer = await as_role("viewer")
    found = await pages(viewer, fields="args")
    assert len(found) == 5
    assert all(size < 4.2 * MIB for size, _items in found)
    ids = [item["id"] for _size, items in found for item in items]
    assert len(set(ids)) == len(ids) == 1000


@pytest.mark.parametrize("fields", ["secret", "args,nothing", "", "args;result"])
async def test_fields_that_are_not_known(as_role: AsRole, fields: str) -> None:
    answer = await (await as_role("viewer")).get("/v1/jobs", params={"fields": fields})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "fields")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x" * 201},
        {"labels": {"x" * 65: "a"}},
        {"labels": {"": "a"}},
        {"labels": {"a": "x" * 257}},
        {"labels": {f"l{n}": "a" for n in range(33)}},
        {"lanes": ["default"] * 1001},
        {"kinds": ["k"] * 1001},
        {"host": "x" * 201},
    ],
    ids=lambda body: json.dumps(body)[:20],
)
async def test_labels_and_names_of_runners(as_role: AsRole, body: dict[str, Any]) -> None:
    runner = await as_role("runner")
    answer = await runner.post("/v1/runners", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
