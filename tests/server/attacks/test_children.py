"""Children are jobs that a runner has made: they give it no more than its token does."""

import json

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.runner_calls import Claimed, claim_one
from tests.server.test_admin import enqueue
from tests.server.test_jobs import is_problem

CHILDREN = "select count(*) from fenceline.child"


@pytest.fixture
async def attempt(as_role: AsRole) -> Claimed:
    await enqueue(await as_role("operator", tenant="acme"), "plain")
    return await claim_one(await as_role("runner", tenant="acme"))


@pytest.mark.parametrize("kind", ["fenceline.webhook", "fenceline.rekey", "fenceline."])
async def test_kinds_of_our_own(attempt: Claimed, connect: Connect, kind: str) -> None:
    """Else it would have webhooks signed for it, or everything encrypted anew."""
    is_problem(await attempt.post("children", {"kind": kind, "args": {"hook": 1, "job": attempt.job}}), 422, "invalid")
    assert await (await connect()).fetchval(CHILDREN) == 0


@pytest.mark.parametrize(
    "options",
    [{"retry_of": 1}, {"parent": 1}, {"delivery": "arq"}, {"actor_role": "operator"}, {"bound_kinds": []}, {"x": 1}],
    ids=str,
)
async def test_options_that_only_we_set(attempt: Claimed, connect: Connect, options: dict[str, object]) -> None:
    """As whose retry a job is, for instance: another tenant's would wait for it, or not wait for the true one."""
    refused = await attempt.post("children", {"kind": "plain", "options": options})
    is_problem(refused, 422, "invalid")
    assert next(iter(options)) in refused.json()["detail"]
    assert await (await connect()).fetchval(CHILDREN) == 0
    foreign = await attempt.post("children", {"kind": "plain", "options": {"tenant": "other"}})
    is_problem(foreign, 422, "invalid")


async def test_identities(attempt: Claimed, connect: Connect) -> None:
    """A kind's rule holds for the token's tenant and role; how the runner says it does not matter."""
    connection = await connect()
    rules = {"tenant:acme": ["billing"], "role:operator": ["*"]}
    await connection.execute("select fenceline.declare_kinds($1)", json.dumps({"pay": {"identities": rules}}))
    bodies: list[dict[str, object]] = [{"identity": "root"}, {"options": {"identity": "root"}}]
    for body in bodies:
        refused = await attempt.post("children", {"kind": "pay", **body})
        is_problem(refused, 403, "forbidden")
        assert refused.json()["reason"] == "identity_refused"
    assert (await attempt.post("children", {"kind": "pay", "identity": "billing"})).status_code == 201
    assert (await attempt.post("children", {"kind": "free", "identity": "root"})).status_code == 201
    assert (await attempt.finish()).status_code == 200
    made = await connection.fetch("select kind, identity from fenceline.job where parent is not null order by 1")
    assert [tuple(row) for row in made] == [("free", "root"), ("pay", "billing")]


async def test_lanes(attempt: Claimed, connect: Connect) -> None:
    """Lanes are the fleet's: a lane that the runner's code names, and that is not there, is not made."""
    connection = await connect()
    known = "select array_agg(name order by name) from fenceline.lane"
    before = await connection.fetchval(known)
    for lane in ("mine", "maintenance", 7):
        asked = await attempt.post("children", {"kind": "plain", "defaults": {"lane": lane, "priority": 3}})
        assert asked.status_code == 201, asked.text
    is_problem(await attempt.post("children", {"kind": "plain", "lane": "mine"}), 422, "invalid")
    assert (await attempt.finish()).status_code == 200
    assert await connection.fetchval(known) == before
    made = await connection.fetch("select lane, priority from fenceline.job where parent is not null order by id")
    assert [tuple(row) for row in made] == [("default", 3), ("maintenance", 3), ("default", 3)]


async def test_a_role_that_sees_its_own_jobs_sees_no_others_in_the_fleet(as_role: AsRole, attempt: Claimed) -> None:
    admin = await as_role("platform_admin")
    body = {"permissions": ["jobs:read", "workers:view"]}
    assert (await admin.post("/v1/roles/narrow", json=body)).status_code == 201

    def jobs(answer: httpx.Response) -> list[str]:
        return [job["id"] for lane in answer.json()["lanes"] for job in lane["jobs"]]

    path = "/v1/admin/workers/status"
    assert jobs(await (await as_role("viewer", tenant="acme")).get(path)) == [attempt.job]
    assert jobs(await (await as_role("narrow", tenant="acme")).get(path)) == []
