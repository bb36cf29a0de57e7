"""An operator at work, beside a worker that never restarts."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from fenceline.testing import TestedApp
from knowledge_graph.application import LANES
from knowledge_graph.graph import add_source, store_chunk

if TYPE_CHECKING:
    from examples.conftest import Programs

pytestmark = pytest.mark.fenceline(app="knowledge_graph.jobs:app")

AsRole = Callable[..., TestClient]
LANE = "/v1/admin/workers/lanes/maintenance"
WORDS = "graph vertex connect meaning people language machines knowledge memory reason signal symbol"
POLARITY = {"concept": "graph", "negative": "people", "positive": "vertex"}


class Operator:
    """What is asked of the server, and waited for."""

    def __init__(self, client: TestClient, programs: "Programs") -> None:
        self.client = client
        self._programs = programs

    def enqueue(self, kind: str, args: dict[str, Any] | None = None) -> str:
        made = self.client.post("/v1/jobs", json={"kind": kind, "args": args or {}})
        assert made.status_code == 202
        job_id: str = made.json()["id"]
        return job_id

    def job(self, job_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.client.get(f"/v1/jobs/{job_id}").json()
        return shown

    def patch(self, path: str, **settings: Any) -> dict[str, Any]:
        answer = self.client.patch(path, json=settings)
        assert answer.status_code == 200, answer.text
        changed: dict[str, Any] = answer.json()
        return changed

    def until(self, job_id: str, status: str) -> None:
        self._programs.until(lambda: self.job(job_id)["status"] == status, f"{job_id} is {status}")

    def rounds_of(self, job_id: str) -> int:
        state = self.client.get(f"/v1/jobs/{job_id}/checkpoint").json()["state"]
        return 0 if state is None else int(state["rounds"])


@pytest.fixture
def operator(as_role: AsRole, graph: Any, programs: "Programs") -> Operator:
    add_source(graph, "book", "default")
    for number, word in enumerate(WORDS.split()):
        store_chunk(graph, "book", number, f"{WORDS} {word}", token=0)
    programs.start("fenceline", "worker", "knowledge_graph.jobs:app", "--grace", "0")
    return Operator(as_role("fleet_operator", "olga"), programs)


def test_drain_resume_reprioritise_tune_and_cancel(operator: Operator, programs: "Programs") -> None:
    # Stop: the lane stands, the others go on.
    assert operator.patch(LANE, enabled=False)["enabled"] is False
    first, second = operator.enqueue("vocab_refresh"), operator.enqueue("epistemic_remeasurement")
    operator.until(operator.enqueue("polarity", POLARITY), "succeeded")
    assert [operator.job(job)["status"] for job in (first, second)] == ["queued", "queued"]
    # Nice, then continue: with one slot strictly in order.
    operator.patch(f"/v1/admin/workers/jobs/{second}/priority", priority=50)
    operator.patch(LANE, enabled=True)
    for job in (first, second):
        operator.until(job, "succeeded")
    assert operator.job(second)["claimed_at"] < operator.job(first)["claimed_at"]
    # A t-SNE that fills its lane delays its lane only.
    runaway = operator.enqueue("projection", {"rounds": 1_000_000})
    programs.until(lambda: operator.rounds_of(runaway) > 0, "some rounds are done")
    behind = operator.enqueue("vocab_refresh")
    operator.until(operator.enqueue("polarity", POLARITY), "succeeded")
    assert operator.job(behind)["status"] == "queued"
    # Who is in which slot: ps.
    status = operator.client.get("/v1/admin/workers/status").json()
    assert runaway in str(status)
    # Another slot, live.
    operator.patch(LANE, slots=2)
    operator.until(behind, "succeeded")
    assert operator.job(runaway)["status"] == "running"
    # Stop again: what runs goes on.
    operator.patch(LANE, enabled=False)
    rounds = operator.rounds_of(runaway)
    programs.until(lambda: operator.rounds_of(runaway) > rounds, "it goes on in a drained lane")
    # Kill: it stops between two rounds, and what it has is kept.
    assert operator.client.post(f"/v1/admin/workers/jobs/{runaway}/cancel").status_code == 200
    operator.until(runaway, "cancelled")
    assert operator.rounds_of(runaway) > 0
    # All of it is in the audit, with the name.
    audit = operator.client.get("/v1/admin/audit", params={"limit": 50}).json()["items"]
    assert len([entry for entry in audit if entry["actor"] == "olga"]) >= 5


def test_who_may_look_and_who_may_manage(as_role: AsRole, fenceline_app: TestedApp) -> None:
    monitor = as_role("monitor", "screen", ["workers:view"])
    lanes = {lane["name"]: lane for lane in monitor.get("/v1/admin/workers/lanes").json()["items"]}
    assert {name: sorted(lanes[name]["kinds"]) for name in LANES} == {name: sorted(LANES[name]) for name in LANES}
    assert [
        (lanes[name]["slots"], lanes[name]["poll_interval_ms"], lanes[name]["stale_timeout_seconds"]) for name in LANES
    ] == [(2, 2000, 1800), (1, 15000, 1800), (1, 30000, 1800)]
    assert monitor.get("/v1/admin/workers/status").status_code == 200
    assert monitor.get("/v1/jobs").status_code == 403
    manager = as_role("manager", "max", ["workers:view", "workers:manage"])
    for client, status in (
        (monitor, 403),
        (as_role("viewer", "vic"), 403),
        (as_role("operator", "bob"), 403),
        (manager, 200),
    ):
        assert client.patch(LANE, json={"slots": 3}).status_code == status
    assert fenceline_app.sync.lanes.get("maintenance").slots == 3
