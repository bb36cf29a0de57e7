"""Kinds of Fenceline's own are not for others: not to enqueue, not to run; and nobody calls himself a schedule."""

import json

import asyncpg
import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem

WEBHOOK = "fenceline.webhook"


@pytest.fixture
async def producer(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("producer")


async def test_a_delivery_cannot_be_forged_over_http(producer: httpx.AsyncClient, as_role: AsRole) -> None:
    body = {"kind": WEBHOOK, "args": {"hook": 1, "job": "x"}}
    is_problem(await producer.post("/v1/jobs", json=body), 422, "invalid")
    is_problem(await producer.post("/v1/jobs", json={**body, "lane": "webhooks", "priority": 1}), 422, "invalid")
    operator = await as_role("operator")
    trigger = {"name": "t", "kind": WEBHOOK}
    is_problem(await operator.post("/v1/triggers", json=trigger), 422, "invalid")
    schedule = {"name": "s", "kind": WEBHOOK, "cron": "0 3 * * *"}
    is_problem(await operator.post("/v1/schedules", json=schedule), 422, "invalid")


async def test_nor_in_sql_whatever_the_origin(connect: Connect) -> None:
    connection = await connect()
    for origin in ("outside", "child", "schedule"):
        for sql in (
            "select fenceline.enqueue($2, p_origin => $1)",
            "select fenceline.enqueue_many($2, array['{}']::json[], p_origin => $1)",
            "select fenceline.enqueue_jobs(json_build_array(json_build_object('kind', $2::text)), p_origin => $1)",
        ):
            with pytest.raises(asyncpg.PostgresError, match="Fenceline's own"):
                await connection.execute(sql, origin, WEBHOOK)


async def test_a_runner_is_not_given_deliveries(as_role: AsRole, connect: Connect) -> None:
    waiting = "select count(*) from fenceline.ready where kind = $1"
    connection = await connect()
    # As the end of a job makes it, but where no server looks for deliveries.
    await connection.execute(
        """select job_ids from fenceline.insert_jobs($1, array['{}']::json[], $2, null, null, 'child')""",
        WEBHOOK,
        '{"lane": "default"}',
    )
    assert await connection.fetchval(waiting, WEBHOOK) == 1
    runner = await as_role("runner")
    runner_id = (await runner.post("/v1/runners", json={"name": "far", "kinds": [WEBHOOK, "plain"]})).json()["id"]
    for kinds in (None, [WEBHOOK]):
        body = {"runner_id": runner_id, "lanes": ["default"], "count": 10, "kinds": kinds}
        answer = await runner.post("/v1/jobs/claim", json={name: v for name, v in body.items() if v is not None})
        assert answer.json()["attempts"] == [], answer.text
    assert await connection.fetchval(waiting, WEBHOOK) == 1


async def test_an_origin_passes_no_drain_and_no_limit(connect: Connect) -> None:
    connection = await connect()
    calls = (
        "select fenceline.enqueue('a', p_origin => $1)",
        "select fenceline.enqueue('a', p_options => '{\"priority\": 1}', p_origin => $1)",
        "select fenceline.enqueue_many('a', array['{}']::json[], p_origin => $1)",
        'select fenceline.enqueue_jobs(\'[{"kind": "a"}]\', p_origin => $1)',
    )
    limit = "select fenceline.set_tenant_limit($1, 'default')"
    for prepare, undo, refusal in (
        ("select fenceline.drain_system(true)", "select fenceline.drain_system(false)", "draining"),
        (limit.replace("$1", "0"), limit.replace("$1", "null"), "unfinished jobs"),
    ):
        await connection.execute(prepare)
        for origin in ("outside", "child", "schedule"):
            for sql in calls:
                with pytest.raises(asyncpg.PostgresError, match=refusal):
                    await connection.execute(sql, origin)
        await connection.execute(undo)


async def test_schedules_go_on_while_the_system_drains(connect: Connect) -> None:
    connection = await connect()
    settings = json.dumps({"kind": "a", "every": 3600})
    await connection.execute("select fenceline.set_schedule('s', $1)", settings)
    await connection.execute("select fenceline.drain_system(true)")
    assert await connection.fetchval("select count(*) from fenceline.run_schedule('s')") == 1
