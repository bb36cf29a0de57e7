"""What concerns the whole fleet is not for a tenant's operator, and no tenant is kept in the dark about it."""

from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.operations import operations
from tests.server.test_admin import enqueue
from tests.server.test_jobs import is_problem

from fenceline.database.schema_files import read_schema_files

LANE = "/v1/admin/workers/lanes/default"


async def do_to_the_fleet(client: httpx.AsyncClient) -> list[int]:
    answers = [
        await client.patch(LANE, json={"slots": 0}),
        await client.patch(LANE, json={"slots": None}),
        await client.post("/v1/admin/workers/lanes/mine"),
        await client.delete("/v1/admin/workers/lanes/mine"),
        await client.post("/v1/admin/drain", json={"reason": "because"}),
        await client.post("/v1/admin/resume"),
        await client.put("/v1/admin/retention", json={"seconds": 1}),
        await client.put("/v1/admin/limits", json={"max_jobs": 1_000_000}),
        await client.post("/v1/admin/sweep"),
        await client.post("/v1/admin/prune"),
    ]
    return [answer.status_code for answer in answers]


async def test_a_tenants_operator_does_not_touch_the_fleet(as_role: AsRole, connect: Connect) -> None:
    operator = await as_role("operator", tenant="acme")
    assert await do_to_the_fleet(operator) == [403] * 10
    assert await (await connect()).fetchval("select count(*) from fenceline.event where action not like 'token%'") == 0
    wide = [o for o in operations() if o.permission in {"workers:manage", "system:manage", "tokens:manage"}]
    assert len(wide) > 15
    for operation in wide:
        answer = await operator.request(operation.method, operation.url(), json=operation.example)
        assert answer.status_code == 403, operation


async def test_what_is_done_to_the_fleet_is_in_every_tenants_audit(as_role: AsRole) -> None:
    fleet = await as_role("fleet_operator", tenant="ops", name="flo")
    assert await do_to_the_fleet(fleet) == [200, 200, 201, 204, 200, 200, 200, 200, 200, 200]
    done = ["tenant.limit", "retention.change", "system.resume", "system.drain", "lane.delete", "lane.create"]
    for tenant in ("acme", "other", "default"):
        operator = await as_role("operator", tenant=tenant)
        for path in ("/v1/admin/audit", f"/v1/admin/audit?tenant={tenant}"):
            events = [e for e in (await operator.get(path)).json()["items"] if e["actor"] == "flo"]
            assert [event["action"] for event in events] == [*done, "lane.change", "lane.change"], path
        assert (await operator.get("/v1/admin/audit?tenant=nobody")).json()["items"] == []
        # A page goes on where the one before it ended, whatever mixture it is of.
        paged: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            page = (await operator.get(f"/v1/admin/audit?limit=3{cursor and f'&cursor={cursor}'}")).json()
            paged, cursor = [*paged, *page["items"]], page["next_cursor"]
        assert paged == (await operator.get("/v1/admin/audit")).json()["items"]


async def test_a_fleet_operator_is_operator_in_all_tenants(as_role: AsRole) -> None:
    producer = await as_role("producer", tenant="acme")
    fleet = await as_role("fleet_operator", tenant="ops", name="flo")
    job, held = await enqueue(producer), await enqueue(producer, needs_approval=True)
    assert {row["id"] for row in (await fleet.get("/v1/jobs?tenant=acme")).json()["items"]} == {job, held}
    assert (await fleet.patch(f"/v1/admin/workers/jobs/{job}/priority", json={"priority": 7})).json()["priority"] == 7
    assert (await fleet.post(f"/v1/jobs/{held}/approve")).json()["status"] == "queued"
    assert (await fleet.post(f"/v1/admin/workers/jobs/{job}/cancel")).json()["status"] == "cancelled"
    is_problem(await fleet.get("/v1/admin/doctor"), 403, "forbidden")
    is_problem(await fleet.post("/v1/tokens", json={"role": "viewer"}), 403, "forbidden")


async def test_an_operator_kills_and_reprioritises_in_its_own_tenant_only(as_role: AsRole) -> None:
    operator, stranger = await as_role("operator", tenant="acme"), await as_role("operator", tenant="other")
    job = await enqueue(await as_role("producer", tenant="acme"))
    path = f"/v1/admin/workers/jobs/{job}"
    is_problem(await stranger.patch(f"{path}/priority", json={"priority": 7}), 404, "not_found")
    is_problem(await stranger.post(f"{path}/cancel"), 404, "not_found")
    assert (await operator.patch(f"{path}/priority", json={"priority": 7})).json()["priority"] == 7
    bulk = {"action": "reprioritise", "ids": [job], "priority": 8}
    assert (await operator.post("/v1/jobs/bulk", json=bulk)).json()["changed"] == 1
    assert (await operator.post(f"{path}/cancel")).json()["status"] == "cancelled"


async def test_a_tenant_cannot_hand_out_what_reaches_all_tenants(as_role: AsRole) -> None:
    """Even one who has every permission of fleet_operator, in one tenant."""
    admin = await as_role("platform_admin")
    seeded = {role["name"]: role for role in (await admin.get("/v1/roles")).json()["items"]}
    permissions = [*seeded["fleet_operator"]["permissions"], "tokens:manage"]
    made = await admin.post("/v1/roles/landlord", json={"permissions": permissions, "own_jobs": False})
    assert made.status_code == 201
    landlord = await as_role("landlord", tenant="acme")
    is_problem(await landlord.post("/v1/tokens", json={"role": "fleet_operator"}), 403, "forbidden")
    assert (await landlord.post("/v1/tokens", json={"role": "operator"})).status_code == 201


@pytest.mark.parametrize("changed", [False, True], ids=["as_seeded", "changed_by_hand"])
async def test_databases_of_before_get_the_new_roles(connect: Connect, *, changed: bool) -> None:
    connection = await connect()
    migrations = {migration.name: migration.text for migration in read_schema_files().migrations}
    [seeds] = [text for name, text in migrations.items() if "create_tokens" in name]
    [new] = [text for name, text in migrations.items() if "create_fleet_operator" in name]
    insert = seeds[seeds.index("insert into fenceline.role") :]
    await connection.execute("delete from fenceline.role")
    await connection.execute(insert[: insert.index(";")])
    await connection.execute("insert into fenceline.role values ('chief', array['workers:manage'])")
    if changed:
        await connection.execute(
            "update fenceline.role set permissions = permissions || 'hooks:manage'::text where name = 'operator'"
        )
    await connection.execute(new)
    rows = await connection.fetch("select name, permissions, all_tenants from fenceline.role")
    roles = {row["name"]: set(row["permissions"]) for row in rows}
    assert ("workers:manage" in roles["operator"]) is changed
    assert roles["chief"] == {"workers:manage", "jobs:manage"}
    assert roles["fleet_operator"] >= {"workers:manage", "jobs:manage", "jobs:read_all"}
    assert {row["name"] for row in rows if row["all_tenants"]} == {"platform_admin", "fleet_operator"}
