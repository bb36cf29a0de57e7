"""A tenant does not learn the names of another tenant's schedules, by whatever way it asks."""

from typing import Any

import asyncpg
import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.runtime.scheduler import Scheduler

DAILY = {"name": "report", "kind": "report", "cron": "0 3 * * *"}
#: The same request on a name that is free everywhere.
FREE = {**DAILY, "name": "freely"}
#: Differ from one schedule to the next, as does the name.
OWN_FIELDS = ("name", "created_at", "changed_at", "last_job")
STORED = "select name from fenceline.schedule order by name"


@pytest.fixture
async def acme(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("operator", tenant="acme", name="ann")


@pytest.fixture
async def other(as_role: AsRole) -> httpx.AsyncClient:
    """Of the tenant that comes second."""
    return await as_role("operator", tenant="other", name="bob")


async def create(client: httpx.AsyncClient, schedule: dict[str, Any] = DAILY) -> dict[str, Any]:
    made = await client.post("/v1/schedules", json=schedule)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == f"/v1/schedules/{schedule['name']}"
    return dict(made.json())


def comparable(schedule: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schedule.items() if name not in OWN_FIELDS}


async def everything_about(client: httpx.AsyncClient, name: str) -> list[tuple[int, str]]:
    """What each route answers about a schedule, until it is gone; last, that it is."""
    path = f"/v1/schedules/{name}"
    answers = [
        await client.post("/v1/schedules", json={**DAILY, "name": name, "cron": "wrong"}),
        await client.post("/v1/schedules", json={**DAILY, "name": name, "misfire_limit": 0}),
        await client.patch(path, json={"timezone": "Mars/Olympus"}),
        await client.patch(path, json={"windows": [{"from": "25:00", "to": "04:00"}]}),
        await client.get(f"{path}/ticks"),
        await client.get(f"{path}@other"),
        await client.get(f"{path}@acme"),
        await client.delete(f"{path}@other"),
        await client.delete(path),
        await client.get(path),
        await client.patch(path, json={"paused": True}),
        await client.post(f"{path}/run"),
        await client.get(f"{path}/ticks"),
        await client.delete(path),
    ]
    return [(answer.status_code, answer.text.replace(name, "NAME")) for answer in answers]


async def test_a_name_that_another_tenant_has_looks_free(
    acme: httpx.AsyncClient, other: httpx.AsyncClient, connect: Connect
) -> None:
    await create(acme)
    made, free = await create(other), await create(other, FREE)
    assert (made["name"], made["tenant"]) == ("report", "other")
    assert comparable(made) == comparable(free)
    is_problem(await other.post("/v1/schedules", json=DAILY), 409, "conflict")  # its own, now
    listed = (await other.get("/v1/schedules")).json()["items"]
    assert [schedule["name"] for schedule in listed] == ["freely", "report"]
    connection = await connect()
    assert [row["name"] for row in await connection.fetch(STORED)] == ["freely", "report", "report@other"]


async def test_each_tenant_acts_on_its_own(acme: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    first, _ = await create(acme), await create(other)
    changed = await other.patch("/v1/schedules/report", json={"every": 60, "cron": None, "options": {"priority": 3}})
    assert (changed.json()["name"], changed.json()["every"], changed.json()["tenant"]) == ("report", 60, "other")
    job = (await other.post("/v1/schedules/report/run")).json()
    assert (job["tenant"], job["priority"], job["created_by"]) == ("other", 3, "schedule:report")
    assert (await other.get("/v1/schedules/report")).json() == changed.json()
    assert (await acme.get("/v1/schedules/report")).json() == first
    assert (await other.delete("/v1/schedules/report")).status_code == 204
    assert (await acme.get("/v1/schedules/report")).json() == first
    events = (await other.get("/v1/admin/audit?subject=report")).json()["items"]
    assert [event["action"] for event in events] == [
        "schedule.delete", "schedule.run", "schedule.change", "schedule.create",
    ]  # fmt: skip
    assert "report@" not in (await other.get("/v1/admin/audit")).text


async def test_no_answer_tells_a_taken_name_from_a_free_one(acme: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    await create(acme)
    assert await everything_about(other, "report") == await everything_about(other, "freely")
    for schedule in (DAILY, FREE):
        await create(other, schedule)
    assert await everything_about(other, "report") == await everything_about(other, "freely")
    assert (await acme.get("/v1/schedules/report")).status_code == 200


async def test_ticks_of_a_tenant_that_had_the_name_before_are_not_shown(
    acme: httpx.AsyncClient, other: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    connection = await connect()
    ticks: dict[httpx.AsyncClient, Any] = {}
    due = "update fenceline.schedule set settled_at = settled_at - interval '1 hour', due_at = fenceline.clock()"
    for client in (acme, other):
        await create(client, {**DAILY, "cron": None, "every": 1800})
        await connection.execute(due)
        await Scheduler(app_parts(queue_app).database().call).run_once()
        ticks[client] = (await client.get("/v1/schedules/report/ticks")).json()["items"]
    assert all(tick["outcome"] in ("fired", "missed") for client in ticks for tick in ticks[client])
    assert ticks[acme]
    assert ticks[other]  # fired under its stored name
    assert (await other.delete("/v1/schedules/report")).status_code == 204
    assert (await acme.delete("/v1/schedules/report")).status_code == 204
    assert (await create(other))["name"] == "report"  # the plain name is free now
    assert (await other.get("/v1/schedules/report/ticks")).json()["items"] == []


async def test_who_crosses_tenants_says_the_stored_name(
    acme: httpx.AsyncClient, other: httpx.AsyncClient, as_role: AsRole, queue_app: Fenceline
) -> None:
    await create(acme)
    await create(other)
    admin = await as_role("platform_admin")
    is_problem(await admin.post("/v1/schedules", json=DAILY), 409, "conflict")
    names = [schedule["name"] for schedule in (await admin.get("/v1/schedules")).json()["items"]]
    assert names == ["report", "report@other"]
    paused = await admin.patch("/v1/schedules/report@other", json={"paused": True})
    assert (paused.json()["name"], paused.json()["tenant"]) == ("report@other", "other")
    assert (await other.get("/v1/schedules/report")).json()["paused"]
    assert not (await acme.get("/v1/schedules/report")).json()["paused"]
    resumed = await queue_app.schedules.resume("report@other")  # with a DSN, as well
    assert (resumed.name, resumed.paused) == ("report@other", False)
    assert (await admin.get("/v1/schedules/report@other/ticks")).status_code == 200
    assert (await admin.delete("/v1/schedules/report@other")).status_code == 204
    is_problem(await other.get("/v1/schedules/report"), 404, "not_found")


async def test_a_stored_name_keeps_its_tenant(
    acme: httpx.AsyncClient, other: httpx.AsyncClient, connect: Connect
) -> None:
    await create(acme)
    await create(other)
    connection = await connect()
    with pytest.raises(asyncpg.PostgresError, match="cannot belong to tenant 'acme'"):
        await connection.execute("""select fenceline.set_schedule('report@other', '{"options": {"tenant": "acme"}}')""")
    is_problem(await other.post("/v1/schedules", json={**DAILY, "name": "report@other"}), 422, "invalid")


async def test_the_audit_of_the_fleets_own_schedules_is_its_own(
    other: httpx.AsyncClient, as_role: AsRole, queue_app: Fenceline
) -> None:
    await queue_app.schedules.create("secret-plan", kind="report", every=60)
    await queue_app.schedules.pause("secret-plan")
    await queue_app.schedules.run("secret-plan")
    await queue_app.schedules.delete("secret-plan")
    assert "secret-plan" not in (await other.get("/v1/admin/audit")).text
    own = await as_role("operator", tenant="default")
    assert len((await own.get("/v1/admin/audit?subject=secret-plan")).json()["items"]) == 4
