"""A runner gets no job whose configuration has changed since it was planned, whether or not its own app could tell."""

import pytest
from tests.server.conftest import AsRole

from fenceline import Fenceline


@pytest.mark.parametrize("replicas, status", [(2, "claimed"), (3, "failed")])
async def test_a_stale_plan_is_not_handed_to_a_runner(
    as_role: AsRole, queue_app: Fenceline, replicas: int, status: str
) -> None:
    configuration = {"replicas": 2}

    @queue_app.job()
    async def deploy() -> None: ...

    @deploy.snapshot
    def current() -> dict[str, int]:
        return dict(configuration)

    operator, runner = await as_role("operator"), await as_role("runner")
    planned = (await operator.post("/v1/jobs", json={"kind": "plan", "snapshot": configuration})).json()
    body = {"kind": "deploy", "requires_hash": {"job": planned["id"]}, "priority": 9}
    job = (await operator.post("/v1/jobs", json=body)).json()
    configuration["replicas"] = replicas
    registered = (await runner.post("/v1/runners", json={"name": "r", "lanes": ["default"]})).json()
    claimed = await runner.post("/v1/jobs/claim", json={"runner_id": registered["id"], "count": 1})
    assert [attempt["job"]["id"] for attempt in claimed.json()["attempts"]] == ([job["id"]] if replicas == 2 else [])
    after = (await operator.get(f"/v1/jobs/{job['id']}")).json()
    assert after["status"] == status
    if replicas != 2:
        assert after["error"]["code"] == "plan_hash_mismatch"
