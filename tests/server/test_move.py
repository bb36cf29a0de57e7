"""POST /v1/jobs/{id}/move."""

from tests.server.conftest import AsRole
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand


async def test_a_job_moves_to_another_lane(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator", tenant="acme")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()["id"]
    moved = await operator.post(f"/v1/jobs/{job}/move", json={"lane": "system", "reason": "slow"})
    assert (moved.status_code, moved.json()["lane"]) == (200, "system")
    events = (await operator.get(f"/v1/jobs/{job}/events")).json()["items"]
    assert [(event["event"], event["reason"]) for event in events][1:] == [("job.move", "slow")]
    absent = await operator.post(f"/v1/jobs/{job}/move", json={"lane": "absent"})
    assert is_problem(absent, 422, "invalid")
    assert absent.json()["errors"][0]["field"] == "lane"
    stranger = await as_role("operator", tenant="globex")
    assert is_problem(await stranger.post(f"/v1/jobs/{job}/move", json={"lane": "system"}), 404, "not_found")
    producer = await as_role("producer", tenant="acme")
    assert is_problem(await producer.post(f"/v1/jobs/{job}/move", json={"lane": "system"}), 403, "forbidden")
    await hand.connection.execute("select fenceline.cancel_job(fenceline.parse_public_id($1))", job)
    assert is_problem(await operator.post(f"/v1/jobs/{job}/move", json={"lane": "system"}), 409, "wrong_status")
