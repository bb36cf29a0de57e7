"""Approval that a kind or a lane demands cannot be left out, and nobody approves what he asked for himself."""

import json
from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_admin import enqueue
from tests.server.test_incoming_webhooks import BODY, SECRET, signed
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand

from fenceline import Fenceline

AWAITING = "awaiting_approval"


async def status_of(client: httpx.AsyncClient, job_id: str) -> str:
    return str((await client.get(f"/v1/jobs/{job_id}")).json()["status"])


async def declare(connect: Connect, **kinds: dict[str, Any]) -> None:
    await (await connect()).execute("select fenceline.declare_kinds($1)", json.dumps(kinds))


@pytest.mark.parametrize("demanded_by", ["kind", "lane", "home_lane"])
async def test_no_request_goes_round_what_a_kind_or_a_lane_demands(
    demanded_by: str, as_role: AsRole, connect: Connect
) -> None:
    fleet, producer = await as_role("fleet_operator", name="flo"), await as_role("producer", name="pat")
    if demanded_by == "kind":
        await declare(connect, wipe={"needs_approval": True})
    else:
        assert (await fleet.post("/v1/admin/workers/lanes/careful", json={"needs_approval": True})).status_code == 201
    if demanded_by == "home_lane":
        await fleet.patch("/v1/admin/workers/lanes/careful", json={"kinds": ["wipe"]})
    lane: dict[str, object] = {"lane": "careful"} if demanded_by == "lane" else {}
    asked = [lane, {**lane, "needs_approval": False}, {**lane, "priority": 3, "key": "k"}]
    if demanded_by != "lane":
        asked.append({"lane": "interactive"})
    for options in asked:
        job = await enqueue(producer, "wipe", **options)
        assert await status_of(producer, job) == AWAITING, options
    assert await enqueue(producer, "other")


async def test_it_is_demanded_whoever_enqueues(as_role: AsRole, connect: Connect, hand: Hand) -> None:
    await declare(connect, wipe={"needs_approval": True})
    connection = await connect()
    made = {
        "sql": "select job_id from fenceline.enqueue('wipe')",
        "many": "select job_ids[1] from fenceline.enqueue_many('wipe', array['{}']::json[])",
        "jobs": """select job_ids[1] from fenceline.enqueue_jobs('[{"kind": "wipe", "needs_approval": false}]')""",
    }
    for sql in made.values():
        job_id = await connection.fetchval(sql)
        assert await connection.fetchval("select fenceline.job_status($1)", job_id) == AWAITING
    operator = await as_role("operator", name="ann")
    new = {"name": "nightly", "kind": "wipe", "cron": "0 3 * * *", "options": {"needs_approval": False}}
    assert (await operator.post("/v1/schedules", json=new)).status_code == 201
    ran = await operator.post("/v1/schedules/nightly/run")
    assert ran.json()["status"] == AWAITING, ran.text
    # A child of a job that needs none.
    parent = await enqueue(operator, "plain")
    [attempt] = (await hand.claim()).values()
    await connection.execute(
        "select fenceline.add_children(fenceline.parse_public_id($1), $2, 'wipe', array['{}']::json[])", parent, attempt
    )
    await hand.finish(parent, attempt)
    child = "select fenceline.job_status(id) from fenceline.job where kind = 'wipe' and created_by = 'ann'"
    assert await status_of(operator, parent) == "succeeded"
    assert [row[0] for row in await connection.fetch(child)] == [AWAITING]


async def test_a_retry_needs_it_again_also_when_the_first_did_not(as_role: AsRole, connect: Connect) -> None:
    operator = await as_role("operator")
    job = await enqueue(operator, "wipe")
    await operator.post(f"/v1/jobs/{job}/cancel")
    await declare(connect, wipe={"needs_approval": True})
    assert (await operator.post(f"/v1/jobs/{job}/retry")).json()["status"] == AWAITING


async def test_the_decorator_demands_it_before_any_worker_has_started(database: str) -> None:
    async with Fenceline(database) as app:

        @app.job(needs_approval=True)
        async def wipe() -> None: ...

        assert await (await wipe.enqueue()).status() == AWAITING
        assert await (await wipe.options(needs_approval=False).enqueue()).status() == AWAITING


async def test_an_older_program_does_not_undo_it(connect: Connect) -> None:
    """One that has never heard of the rule says nothing about it; a newer one that has dropped it, does."""
    connection = await connect()
    enqueue = "select job_id from fenceline.enqueue('wipe')"
    status = "select fenceline.job_status($1)"
    await declare(connect, wipe={"needs_approval": True})
    await declare(connect, wipe={"priority": 1})
    assert await connection.fetchval(status, await connection.fetchval(enqueue)) == AWAITING
    await declare(connect, wipe={"needs_approval": False, "identities": None})
    assert await connection.fetchval(status, await connection.fetchval(enqueue)) == "queued"


@pytest.mark.parametrize("role", ["operator", "fleet_operator", "platform_admin"])
async def test_nobody_approves_what_he_enqueued(role: str, as_role: AsRole) -> None:
    ann, bob = await as_role(role, name="ann"), await as_role(role, name="bob")
    job = await enqueue(ann, needs_approval=True)
    refused = await ann.post(f"/v1/jobs/{job}/approve")
    is_problem(refused, 403, "forbidden")
    assert refused.json()["reason"] == "own_approval"
    bulk = await ann.post("/v1/jobs/bulk", json={"action": "approve", "ids": [job]})
    assert (bulk.json()["changed"], bulk.json()["reasons"]) == (0, {"own_approval": 1})
    # The same actor with another token is the same actor.
    again = await as_role(role, name="ann")
    is_problem(await again.post(f"/v1/jobs/{job}/approve"), 403, "forbidden")
    assert await status_of(ann, job) == AWAITING
    assert (await bob.post(f"/v1/jobs/{job}/approve")).json()["status"] == "queued"
    rejected = await enqueue(ann, needs_approval=True)
    assert (await ann.post(f"/v1/jobs/{rejected}/reject")).json()["status"] == "cancelled"  # harmless


async def test_nobody_approves_what_his_schedule_or_trigger_enqueued(
    as_role: AsRole, connect: Connect, anonymous: httpx.AsyncClient
) -> None:
    await declare(connect, wipe={"needs_approval": True})
    ann, bob = await as_role("operator", name="ann"), await as_role("operator", name="bob")
    new = {"name": "nightly", "kind": "wipe", "cron": "0 3 * * *"}
    assert (await ann.post("/v1/schedules", json=new)).status_code == 201
    assert (await ann.post("/v1/triggers", json={"name": "push", "kind": "wipe", "secret": SECRET})).status_code == 201
    for pause in (True, False):
        await bob.patch("/v1/schedules/nightly", json={"paused": pause})
    fired = await anonymous.post("/v1/triggers/push", content=BODY, headers=signed(BODY, SECRET))
    ticks = "select fenceline.public_id(job_id) from fenceline.run_schedule('nightly')"  # as a tick, by nobody
    for job in (fired.json()["id"], await (await connect()).fetchval(ticks)):
        refused = await ann.post(f"/v1/jobs/{job}/approve")
        is_problem(refused, 403, "forbidden")
        assert refused.json()["reason"] == "own_approval"
        assert (await bob.post(f"/v1/jobs/{job}/approve")).json()["status"] == "queued"
    # Whoever runs it by hand asks for it too, and so does who says what it enqueues.
    ran = (await bob.post("/v1/schedules/nightly/run")).json()["id"]
    is_problem(await bob.post(f"/v1/jobs/{ran}/approve"), 403, "forbidden")
    assert (await bob.patch("/v1/schedules/nightly", json={"args": {"all": True}})).status_code == 200
    tick = await (await connect()).fetchval(ticks)
    is_problem(await bob.post(f"/v1/jobs/{tick}/approve"), 403, "forbidden")
    # One of another tenant with such a name is somebody else's.
    other = await as_role("operator", tenant="other", name="bob")
    assert (await other.post("/v1/schedules", json=new)).status_code == 201


async def test_a_move_does_not_go_round_it(as_role: AsRole) -> None:
    fleet, ann = await as_role("fleet_operator", name="flo"), await as_role("operator", name="ann")
    assert (await fleet.post("/v1/admin/workers/lanes/careful", json={"needs_approval": True})).status_code == 201
    job, asked = await enqueue(ann), await enqueue(ann, needs_approval=True)
    is_problem(await ann.post(f"/v1/jobs/{job}/move", json={"lane": "careful"}), 409, "wrong_status")
    assert (await ann.get(f"/v1/jobs/{job}")).json()["lane"] == "default"
    moved = await ann.post(f"/v1/jobs/{asked}/move", json={"lane": "careful"})
    assert (moved.json()["lane"], moved.json()["status"]) == ("careful", AWAITING)
    assert (await fleet.post(f"/v1/jobs/{asked}/approve")).json()["status"] == "queued"


async def test_whoever_is_alone_says_so_and_that_is_audited(as_role: AsRole) -> None:
    admin, operator = await as_role("platform_admin", name="root"), await as_role("operator", name="ann")
    assert (await operator.get("/v1/admin/approval")).json() == {"by_other": True}
    is_problem(await operator.put("/v1/admin/approval", json={"by_other": False}), 403, "forbidden")
    assert (await admin.put("/v1/admin/approval", json={"by_other": False})).json() == {"by_other": False}
    job = await enqueue(operator, needs_approval=True)
    assert (await operator.post(f"/v1/jobs/{job}/approve")).json()["status"] == "queued"
    events = (await operator.get("/v1/admin/audit?action=system.approval")).json()["items"]
    assert [(event["actor"], event["after"]) for event in events] == [("root", {"by_other": False})]


async def test_a_kind_says_who_may_name_which_identity(as_role: AsRole, connect: Connect) -> None:
    rules = {"tenant:acme": ["billing"], "role:operator": ["*"], "*": ["readonly"]}
    await declare(connect, pay={"identities": rules})
    acme, other = await as_role("producer", tenant="acme"), await as_role("producer", tenant="other")
    operator = await as_role("operator", tenant="other", name="ann")
    allowed = [(acme, "billing"), (acme, "readonly"), (other, "readonly"), (operator, "root"), (operator, "billing")]
    for client, identity in allowed:
        assert await enqueue(client, "pay", identity=identity)
    for client, identity in ((acme, "root"), (other, "billing")):
        refused = await client.post("/v1/jobs", json={"kind": "pay", "identity": identity})
        is_problem(refused, 403, "forbidden")
        assert refused.json()["reason"] == "identity_refused"
    assert await enqueue(other, "pay")  # none at all
    assert await enqueue(other, "free", identity="root")  # no rule
    # Nor by a schedule, a trigger, or in SQL.
    admin_of_acme = await as_role("fleet_operator", tenant="acme")
    options = {"identity": "root"}
    schedule = {"name": "s", "kind": "pay", "cron": "0 3 * * *", "options": options}
    is_problem(await admin_of_acme.post("/v1/schedules", json=schedule), 403, "forbidden")
    trigger = {"name": "t", "kind": "pay", "options": options}
    is_problem(await admin_of_acme.post("/v1/triggers", json=trigger), 403, "forbidden")
    assert (await operator.post("/v1/schedules", json=schedule)).status_code == 201
    assert (await operator.post("/v1/schedules/s/run")).status_code == 202
    with pytest.raises(Exception, match="identity 'root' is not for jobs of kind 'pay'"):
        await (await connect()).execute("""select fenceline.enqueue('pay', p_options => '{"identity": "root"}')""")


async def test_nobody_uses_an_identity_that_somebody_else_named(as_role: AsRole, connect: Connect) -> None:
    """In a schedule by what it enqueues, in a trigger by its secret."""
    await declare(connect, pay={"identities": {"role:platform_admin": ["root"]}})
    admin, operator = await as_role("platform_admin"), await as_role("operator")
    options = {"identity": "root"}
    made = {"name": "s", "kind": "pay", "args": {"to": "ann"}, "options": options}
    assert (await admin.post("/v1/schedules", json={**made, "cron": "0 3 * * *"})).status_code == 201
    assert (await admin.post("/v1/triggers", json=made)).status_code == 201
    for change in ({"args": {"to": "eve"}}, {"kind": "pay", "args": {}}, {"args": {"to": "eve"}, "options": options}):
        refused = await operator.patch("/v1/schedules/s", json=change)
        is_problem(refused, 403, "forbidden")
        assert refused.json()["reason"] == "identity_refused"
    is_problem(await operator.post("/v1/triggers/s/rotate", json={}), 403, "forbidden")
    # What is not about it can be changed by all, and all by who may name it.
    assert (await operator.patch("/v1/schedules/s", json={"paused": True})).status_code == 200
    assert (await operator.patch("/v1/schedules/s", json={"args": {}, "options": {}})).status_code == 200
    change = {"args": {"to": "bob"}, "options": options}
    assert (await admin.patch("/v1/schedules/s", json=change)).json()["args"] == {"to": "bob"}
    assert (await admin.post("/v1/triggers/s/rotate", json={})).status_code == 200


async def test_a_retry_keeps_the_identity_that_was_allowed(as_role: AsRole, connect: Connect) -> None:
    await declare(connect, pay={"identities": {"role:operator": ["root"]}})
    operator = await as_role("operator")
    job = await enqueue(operator, "pay", identity="root")
    await operator.post(f"/v1/jobs/{job}/cancel")
    assert (await operator.post(f"/v1/jobs/{job}/retry")).status_code == 202
