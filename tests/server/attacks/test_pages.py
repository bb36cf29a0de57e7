"""Pages are bounded in bytes, not only in rows: lists carry args and results on request, and cut what is long."""

import itertools
import json
from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole, make_token, running
from tests.server.runner_calls import claim_one, register
from tests.server.test_admin import enqueue
from tests.server.watching import Watcher, serving
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

MIB = 2**20
JOBS = 40
LONG = "long " * 200_000
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


async def all_of(client: httpx.AsyncClient, path: str, **query: str) -> tuple[int, list[dict[str, Any]]]:
    """How many pages a list has, and their items; no page is much longer than it may be."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    for count in itertools.count(1):
        answer = await client.get(path, params={**query, **cursor})
        assert answer.status_code == 200, answer.text[:500]
        assert len(answer.content) < 5.2 * MIB
        found += answer.json()["items"]
        if answer.json()["next_cursor"] is None:
            return count, found
        cursor = {"cursor": answer.json()["next_cursor"]}
    raise AssertionError


async def test_records_of_a_job(as_role: AsRole) -> None:
    """A runner writes as many as it likes; whoever reads them gets them in pages."""
    operator = await as_role("operator")
    await enqueue(operator, "plain", max_attempts=8)
    runner = await as_role("runner")
    runner_id = await register(runner)
    for n in range(8):
        attempt = await claim_one(runner, runner_id)
        assert (await attempt.put(f"steps/s{n}", {"result": f"{n}{LONG}"})).status_code == 204
        assert (await attempt.put("progress", {"message": f"{n}{LONG}"})).status_code == 204
        lines = [{"message": "z" * 8000}] * 120
        assert (await attempt.post("logs", {"lines": lines})).status_code == 204
        ended = await attempt.finish("failed", error={"message": LONG}, metadata={"n": n}, delay_seconds=0)
        assert ended.status_code == 200, ended.text
    path = f"/v1/jobs/{attempt.job}"
    for records, wanted in (("steps", 8), ("phases", 8), ("attempts", 8), ("logs", 960)):
        count, items = await all_of(operator, f"{path}/{records}")
        assert (count > 1, len(items)) == (True, wanted), records
    _count, steps = await all_of(operator, f"{path}/steps")
    assert [step["result"] for step in steps] == [f"{n}{LONG}" for n in range(8)]
    count, events = await all_of(operator, f"{path}/events")
    assert count > 1
    assert [event["event"] for event in events].count("attempt.end") == 8
    for wrong in ("-1", "x", "1.5", "99999999999", "²"):
        answer = await operator.get(f"{path}/steps", params={"cursor": wrong})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "cursor"), wrong


async def test_what_operators_made(as_role: AsRole) -> None:
    operator = await as_role("operator")
    for n in range(6):
        body = {"name": f"n{n}", "kind": "k", "args": {"text": LONG}}
        assert (await operator.post("/v1/schedules", json={**body, "cron": "0 3 * * *"})).status_code == 201
        assert (await operator.post("/v1/triggers", json=body)).status_code == 201
    for path in ("/v1/schedules", "/v1/triggers"):
        count, items = await all_of(operator, path)
        assert (count > 1, [item["name"] for item in items]) == (True, [f"n{n}" for n in range(6)])
    count, events = await all_of(operator, "/v1/admin/audit")
    made = [event for event in events if event["action"] in ("schedule.create", "trigger.create")]
    assert (count > 1, len(made)) == (True, 12)


async def test_progress_of_active_jobs(as_role: AsRole) -> None:
    operator = await as_role("operator")
    await enqueue(operator, "plain")
    attempt = await claim_one(await as_role("runner"))
    assert (await attempt.put("progress", {"message": LONG})).status_code == 204
    active = await operator.get("/v1/stats/active")
    assert list(active.json()["items"][0]["progress"]) == ["$cut", "message"]
    assert len(active.content) < 4096


@pytest.mark.usefixtures("big_jobs")
async def test_a_stream_of_many_jobs(queue_app: Fenceline) -> None:
    """It begins with all of the newest, however long they are, and without what is long in them."""
    headers = {"Authorization": f"Bearer {await make_token(queue_app, 'viewer')}"}
    async with (
        running(create_app(ServerSettings(maintain=False, deliver=False), queue_app)) as api,
        serving(api) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds_left()) as viewer,
    ):
        async with Watcher(viewer, "/v1/stream") as watcher:
            await watcher.until(lambda: len(watcher.statuses) == JOBS)
        shown = watcher.of("status")
        assert len({job["id"] for job in shown}) == JOBS
        assert all(job["args"] == job["result"] == {"$cut": {"bytes": MIB + 12}} for job in shown)
        async with Watcher(viewer, f"/v1/jobs/{shown[0]['id']}/stream") as watcher:
            await watcher.until(lambda: bool(watcher.statuses))
        assert len(watcher.of("status")[0]["args"]["text"]) == MIB


@pytest.mark.parametrize("size", [5_000, 15_000])
async def test_a_stream_begins_with_all_of_the_newest(connect: Connect, queue_app: Fenceline, size: int) -> None:
    """Also where they do not fit into what may wait for one client."""
    connection = await connect()
    await connection.execute(FILL.replace("32768", str(size // 32)), 100)
    await connection.execute(END)
    headers = {"Authorization": f"Bearer {await make_token(queue_app, 'viewer')}"}
    async with (
        running(create_app(ServerSettings(maintain=False, deliver=False), queue_app)) as api,
        serving(api) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds_left()) as viewer,
        Watcher(viewer, "/v1/stream") as watcher,
    ):
        await watcher.until(lambda: len(watcher.statuses) == 100)
    assert len({job["id"] for job in watcher.of("status")}) == 100


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


async def test_runners_of_one_token(as_role: AsRole, connect: Connect) -> None:
    """Everybody who looks at the fleet gets them all."""
    runner, other = await as_role("runner"), await as_role("runner")
    connection = await connect()
    await register(runner)
    more = """insert into fenceline.worker (name, runner, owner, lease_seconds, lease_until, heartbeat_at, started_at)
              select w.name, true, w.owner, 60, w.lease_until, w.heartbeat_at, w.started_at
              from fenceline.worker w, generate_series(1, 999)"""
    await connection.execute(more)
    refused = await runner.post("/v1/runners", json={})
    assert (refused.status_code, refused.json()["code"]) == (429, "limited")
    assert await register(other)
    await connection.execute("update fenceline.worker set stopped_at = clock_timestamp() where id % 2 = 0")
    assert await register(runner)
