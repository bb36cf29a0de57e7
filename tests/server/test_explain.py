"""GET /v1/jobs/{id}/explain: every status has an answer, and nobody learns of jobs they may not see."""

import httpx
import pytest
from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand


@pytest.fixture
async def operator(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("operator")


async def enqueue(client: httpx.AsyncClient, **options: object) -> str:
    made = await client.post("/v1/jobs", json={"kind": "a", **options})
    assert made.status_code == 202, made.text
    return str(made.json()["id"])


async def test_a_job_from_its_gates_to_its_end(operator: httpx.AsyncClient, hand: Hand) -> None:
    job = await enqueue(operator, needs_approval=True, max_attempts=1)

    async def code() -> str:
        answer = await operator.get(f"/v1/jobs/{job}/explain")
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert set(told) == {"id", "status", "code", "text", "since", "until", "details", "commands", "also"}
        assert told["id"] == job
        return str(told["code"])

    assert await code() == "approval"
    await hand.connection.execute("select fenceline.approve_job(fenceline.parse_public_id($1), 'bo')", job)
    assert await code() == "next"
    await hand.run("failed")
    assert await code() == "failed"


async def test_foreign_missing_and_malformed_ids_are_answered_alike(as_role: AsRole, hand: Hand) -> None:
    job = await enqueue(await as_role("operator", tenant="a"))
    stranger = await as_role("operator", tenant="b")
    for name in (job, "0000-0000-0001-002", "nonsense"):
        assert is_problem(await stranger.get(f"/v1/jobs/{name}/explain"), 404, "not_found")


async def test_who_holds_the_slots_is_told_to_those_who_may_see_it(as_role: AsRole, hand: Hand) -> None:
    await hand.connection.execute("select fenceline.set_lane('default', '{\"slots\": 1}')")
    theirs = await enqueue(await as_role("operator", tenant="b"))
    await hand.claim()
    ours = await as_role("operator", tenant="a")
    job = await enqueue(ours)
    told = await ours.get(f"/v1/jobs/{job}/explain")
    assert told.json()["code"] == "lane_full"
    assert theirs not in told.text
    everybody = await as_role("platform_admin")
    assert theirs in (await everybody.get(f"/v1/jobs/{job}/explain")).text


async def test_a_producer_is_not_told_about_the_fleet(as_role: AsRole, hand: Hand) -> None:
    await hand.connection.execute("update fenceline.worker set lanes = '{system}', name = 'secret-host'")
    producer = await as_role("producer")
    job = await enqueue(producer)
    told = await producer.get(f"/v1/jobs/{job}/explain")
    assert told.json()["code"] == "no_worker"
    assert "secret-host" not in told.text
    viewer = await as_role("viewer")
    assert "secret-host" in (await viewer.get(f"/v1/jobs/{job}/explain")).text
