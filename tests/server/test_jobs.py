from datetime import UTC, datetime, timedelta

import httpx
from tests.server.conftest import AsRole

JOB_FIELDS = {
    "id", "kind", "status", "waiting_for", "lane", "priority", "tenant", "args", "labels", "attempt", "max_attempts",
    "created_at", "created_by", "run_at", "claimed_at", "started_at", "finished_at", "worker", "phase", "progress",
    "result", "error", "errors", "cancel_requested_at", "retry_of", "parent", "delivery", "backend_job_id",
}  # fmt: skip


def is_problem(response: httpx.Response, status: int, code: str) -> bool:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["code"] == code, document
    return True


async def test_enqueue_answers_202_with_the_job_and_where_it_is(as_role: AsRole) -> None:
    producer = await as_role("producer", name="ci")
    response = await producer.post("/v1/jobs", json={"kind": "ingest", "args": {"path": "a"}})
    assert response.status_code == 202, response.text
    job = response.json()
    assert job.keys() == JOB_FIELDS
    assert (job["kind"], job["status"], job["args"], job["created_by"], job["tenant"]) == (
        "ingest", "queued", {"path": "a"}, "ci", "default",
    )  # fmt: skip
    assert response.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (await producer.get(response.headers["location"])).json() == job


async def test_every_option_arrives(as_role: AsRole) -> None:
    operator = await as_role("operator", tenant="acme")
    first = (await operator.post("/v1/jobs", json={"kind": "a"})).json()
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    response = await operator.post(
        "/v1/jobs",
        json={
            "kind": "b", "args": {"x": [1, None]}, "lane": "maintenance", "priority": 7, "run_at": at, "expires_at": at,
            "dedupe_key": "d", "max_attempts": 9, "labels": {"project": "x"}, "resource_lock": "r", "key": "k",
            "key_limit": 2, "needs_approval": True, "snapshot": {"v": 1}, "requires_hash": "h",
            "after": {"jobs": [first["id"]], "policy": "always"}, "identity": "i",
        },
    )  # fmt: skip
    assert response.status_code == 202, response.text
    job = response.json()
    assert (job["status"], job["lane"], job["priority"], job["max_attempts"], job["tenant"], job["labels"]) == (
        "awaiting_approval", "maintenance", 7, 9, "acme", {"project": "x"},
    )  # fmt: skip


async def test_repeats_and_duplicates_answer_200_with_the_first_job(as_role: AsRole) -> None:
    producer = await as_role("producer")
    for headers, extra in (({"Idempotency-Key": "once"}, {}), ({}, {"dedupe_key": "d"})):
        first = await producer.post("/v1/jobs", json={"kind": "a", **extra}, headers=headers)
        again = await producer.post("/v1/jobs", json={"kind": "a", **extra}, headers=headers)
        assert (first.status_code, again.status_code) == (202, 200)
        assert again.json() == first.json()
        assert again.headers["location"] == first.headers["location"]
