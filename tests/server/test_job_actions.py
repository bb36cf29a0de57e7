"""Verbs on one job, its records, and whose jobs they reach."""

import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand


async def test_approve_and_reject(as_role: AsRole) -> None:
    operator, producer = await as_role("operator", name="ann"), await as_role("producer")
    first, second = [
        (await producer.post("/v1/jobs", json={"kind": "a", "needs_approval": True})).json() for _ in range(2)
    ]
    approved = await operator.post(f"/v1/jobs/{first['id']}/approve", json={"reason": "fine"})
    assert (approved.status_code, approved.json()["status"]) == (200, "queued")
    again = await operator.post(f"/v1/jobs/{first['id']}/approve")
    assert is_problem(again, 409, "wrong_status")
    assert again.json()["job_status"] == "queued"
    rejected = (await operator.post(f"/v1/jobs/{second['id']}/reject", json={"reason": "no"})).json()
    assert (rejected["status"], rejected["error"]) == ("cancelled", {"code": "rejected", "message": "no"})


async def test_cancel_asks_a_running_handler_and_force_takes_the_job(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()
    await hand.claim()
    asked = (await operator.post(f"/v1/jobs/{job['id']}/cancel", json={"reason": "stop"})).json()
    assert asked["status"] == "claimed"
    assert asked["cancel_requested_at"] is not None
    killed = (await operator.post(f"/v1/jobs/{job['id']}/cancel", json={"force": True})).json()
    assert killed["status"] == "cancelled"
    is_problem(await operator.post(f"/v1/jobs/{job['id']}/cancel"), 409, "wrong_status")


async def test_retry_makes_a_new_job(as_role: AsRole, hand: Hand) -> None:
    producer = await as_role("producer", name="ci")
    job = (await producer.post("/v1/jobs", json={"kind": "a", "args": {"x": 1}})).json()
    is_problem(await producer.post(f"/v1/jobs/{job['id']}/retry"), 409, "wrong_status")
    await hand.run("failed_for_good")
    again = await producer.post(f"/v1/jobs/{job['id']}/retry")
    assert again.status_code == 202
    new = again.json()
    assert again.headers["location"] == f"/v1/jobs/{new['id']}"
    assert (new["retry_of"], new["args"], new["status"], new["created_by"]) == (job["id"], {"x": 1}, "queued", "ci")


@pytest.mark.parametrize("verb", ["approve", "reject", "retry", "cancel"])
async def test_every_verb_takes_a_reason_and_force(as_role: AsRole, verb: str) -> None:
    operator, producer = await as_role("operator"), await as_role("producer")
    job = (await producer.post("/v1/jobs", json={"kind": "a", "needs_approval": True})).json()
    if verb == "retry":
        await operator.post(f"/v1/jobs/{job['id']}/cancel")
    done = await operator.post(f"/v1/jobs/{job['id']}/{verb}", json={"reason": "so", "force": True})
    assert done.status_code in {200, 202}, done.text


async def test_delete_cancels_what_is_unfinished_and_removes_what_is_finished(as_role: AsRole) -> None:
    operator = await as_role("operator")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()
    cancelled = await operator.delete(f"/v1/jobs/{job['id']}")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (await operator.delete(f"/v1/jobs/{job['id']}")).status_code == 204
    is_problem(await operator.get(f"/v1/jobs/{job['id']}"), 404, "not_found")
    is_problem(await operator.delete(f"/v1/jobs/{job['id']}"), 404, "not_found")


async def test_attempts_logs_and_events(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator", name="ann")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()
    await operator.patch(f"/v1/admin/workers/jobs/{job['id']}/priority", json={"priority": 5})
    ((_, attempt_id),) = (await hand.claim()).items()
    await hand.log(job["id"], attempt_id, "one", "two", "three")
    await hand.finish(job["id"], attempt_id, result={"rows": 3})
    attempts = (await operator.get(f"/v1/jobs/{job['id']}/attempts")).json()
    assert [(a["attempt_id"], a["outcome"], a["worker"]) for a in attempts["items"]] == [
        (str(attempt_id), "succeeded", "hand")
    ]
    seen, cursor = [], None
    for _ in range(3):
        params = {"limit": 2} if cursor is None else {"limit": 2, "cursor": cursor}
        page = (await operator.get(f"/v1/jobs/{job['id']}/logs", params=params)).json()
        seen += [line["message"] for line in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ["one", "two", "three"]
    events = (await operator.get(f"/v1/jobs/{job['id']}/events")).json()["items"]
    assert [(event["event"], event["actor"]) for event in events] == [
        ("job.enqueue", "ann"), ("job.reprioritise", "ann"), ("attempt.claim", "hand"), ("attempt.start", "hand"),
        ("attempt.end", "hand"),
    ]  # fmt: skip
    assert events[1]["details"] == {"before": {"priority": 0}, "after": {"priority": 5}}
    assert (events[-1]["details"]["outcome"], events[-1]["details"]["final"]) == ("succeeded", True)


VERBS = [
    ("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("POST", "/retry"), ("GET", "/attempts"), ("GET", "/logs"),
    ("GET", "/events"),
]  # fmt: skip


@pytest.mark.parametrize("method,path", VERBS)
async def test_producers_reach_their_own_jobs_only(as_role: AsRole, method: str, path: str) -> None:
    mine, other = await as_role("producer", name="me"), await as_role("producer", name="other")
    job = (await mine.post("/v1/jobs", json={"kind": "a"})).json()
    is_problem(await other.request(method, f"/v1/jobs/{job['id']}{path}"), 404, "not_found")
    assert (await mine.get(f"/v1/jobs/{job['id']}")).json() == job
    assert (await mine.request(method, f"/v1/jobs/{job['id']}{path}")).status_code != 404


async def test_lists_show_what_one_may_see(as_role: AsRole) -> None:
    clients = {
        "me": await as_role("producer", name="me"),
        "again": await as_role("producer", name="me"),  # a second token of the same actor
        "other": await as_role("producer", name="other"),
        "foreign": await as_role("producer", name="me", tenant="acme"),
    }
    ids = {name: (await client.post("/v1/jobs", json={"kind": name})).json()["id"] for name, client in clients.items()}

    async def listed(role: str, tenant: str, name: str) -> set[str]:
        client = await as_role(role, tenant=tenant, name=name)
        page = (await client.get("/v1/jobs")).json()
        assert page["next_cursor"] is None
        return {job["kind"] for job in page["items"]}

    assert await listed("producer", "default", "me") == {"me", "again"}
    assert await listed("producer", "acme", "me") == {"foreign"}
    for role in ("viewer", "operator"):
        assert await listed(role, "default", role) == {"me", "again", "other"}
        assert await listed(role, "acme", role) == {"foreign"}
    assert await listed("platform_admin", "default", "root") == ids.keys()
    admin = await as_role("platform_admin")
    page = (await admin.get("/v1/jobs", params={"tenant": ["acme"]})).json()
    assert [job["id"] for job in page["items"]] == [ids["foreign"]]


async def test_jobs_past_their_retention_are_not_found(as_role: AsRole, hand: Hand, connect: Connect) -> None:
    operator = await as_role("operator")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()
    await hand.run()
    assert (await operator.get(f"/v1/jobs/{job['id']}")).status_code == 200
    connection = await connect()
    await connection.execute("update fenceline.history set ended_at = now() - interval '8 days'")
    for method, path in VERBS:
        is_problem(await operator.request(method, f"/v1/jobs/{job['id']}{path}"), 404, "not_found")
