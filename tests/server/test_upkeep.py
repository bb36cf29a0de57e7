"""What operators do by hand over HTTP: sweep, prune, retention, erase; and doctor."""

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_admin import enqueue
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand

WEEK = {"kind": None, "status": None, "seconds": 604800.0, "said_by": "default"}


@pytest.fixture
async def operator(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("fleet_operator", name="ann")


@pytest.fixture
async def admin(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("platform_admin", name="root")


async def test_sweep_takes_back_what_lost_workers_held(
    operator: httpx.AsyncClient, hand: Hand, connect: Connect
) -> None:
    job = await enqueue(operator)
    await hand.claim()
    assert (await operator.post("/v1/admin/sweep")).json() == {"swept": 0}
    await (await connect()).execute("update fenceline.worker set lease_until = now() - interval '1 second'")
    assert (await operator.post("/v1/admin/sweep")).json() == {"swept": 1}
    assert (await operator.get(f"/v1/jobs/{job}")).json()["status"] == "queued"


async def test_prune_forgets_in_steps(operator: httpx.AsyncClient, connect: Connect) -> None:
    for _ in range(3):
        await operator.post(f"/v1/jobs/{await enqueue(operator)}/cancel")
    assert (await operator.post("/v1/admin/prune")).json() == {"pruned": 0}
    await (await connect()).execute("update fenceline.history set ended_at = now() - interval '8 days'")
    steps = [(await operator.post("/v1/admin/prune", json={"limit": 2})).json()["pruned"] for _ in range(3)]
    assert steps == [2, 1, 0]
    assert (await operator.get("/v1/jobs")).json()["items"] == []
    is_problem(await operator.post("/v1/admin/prune", json={"limit": 0}), 422, "invalid")


async def test_retention_is_everybodys_to_see_and_the_fleets_to_set(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, as_role: AsRole
) -> None:
    path = "/v1/admin/retention"
    tenants = await as_role("operator", tenant="acme")
    assert (await tenants.get(path)).json() == {"items": [WEEK], "next_cursor": None}
    is_problem(await tenants.put(path, json={"seconds": 1}), 403, "forbidden")
    changed = await operator.put(path, json={"seconds": 60, "kind": "ingest", "status": "failed"})
    assert {"kind": "ingest", "status": "failed", "seconds": 60.0, "said_by": "operator"} in changed.json()["items"]
    assert (await operator.put(path, json={"seconds": None, "kind": "ingest"})).json()["items"] == [WEEK]
    events = (await admin.get("/v1/admin/audit", params={"action": "retention.change"})).json()["items"]
    assert [(event["actor"], event["subject"]) for event in events] == [("ann", "ingest")] * 2
    for bad in ({}, {"seconds": -1}, {"seconds": "1"}, {"seconds": 1, "status": "queued"}, {"seconds": 10**400}):
        is_problem(await admin.put(path, json=bad), 422, "invalid")
    is_problem(await admin.put(path, json={"seconds": 1, "status": "failed"}), 422, "invalid")  # of which kind?


async def test_args_of_a_finished_job_are_erased(operator: httpx.AsyncClient, as_role: AsRole) -> None:
    job = await enqueue(operator, args={"card": "4111"})
    path = f"/v1/jobs/{job}/erase"
    is_problem(await operator.post(path), 409, "wrong_status")
    await operator.post(f"/v1/jobs/{job}/cancel")
    stranger = await as_role("operator", tenant="acme")
    is_problem(await stranger.post(path), 404, "not_found")
    other = await as_role("producer", name="bob")
    is_problem(await other.post(path), 404, "not_found")
    erased = await operator.post(path, json={"reason": "asked by the customer"})
    assert (erased.status_code, list(erased.json()["args"])) == (200, ["$erased"])
    events = (await operator.get(f"/v1/jobs/{job}/events")).json()["items"]
    assert [(event["actor"], event["reason"]) for event in events if event["event"] == "job.erase"] == [
        ("ann", "asked by the customer")
    ]


async def test_doctor_sees_what_it_sees_over_sql(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, connect: Connect
) -> None:
    connection = await connect()
    await enqueue(operator, lane="interactive")
    await connection.execute("update fenceline.lane set slots = 0 where name = 'interactive'")
    answer = (await admin.get("/v1/admin/doctor")).json()
    assert answer["healthy"] is False
    assert "fenceline lanes set interactive" in next(
        finding["do"] for finding in answer["findings"] if finding["check"] == "stuck_jobs"
    )
    is_problem(await operator.get("/v1/admin/doctor"), 403, "forbidden")  # it tells of other tenants' sessions
    is_problem(await admin.get("/v1/admin/doctor", params={"patience": "nan"}), 422, "invalid")


async def test_rates_are_of_the_tenants_own_jobs(operator: httpx.AsyncClient, as_role: AsRole) -> None:
    await operator.post(f"/v1/jobs/{await enqueue(operator)}/cancel")
    path, long = "/v1/stats/rates", {"seconds": 1000}
    assert (await operator.get(path, params=long)).json() == {"items": [{"lane": "default", "per_second": 0.001}]}
    stranger = await as_role("operator", tenant="acme")
    assert (await stranger.get(path, params=long)).json() == {"items": []}
    is_problem(await operator.get(path, params={"seconds": 0}), 422, "invalid")
