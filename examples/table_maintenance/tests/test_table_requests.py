"""What a client is answered, and what becomes of its tables."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fenceline.testing import TestedApp
from table_maintenance.actions import ORDER
from table_maintenance.catalog import load_table, make_sample_table

pytestmark = pytest.mark.fenceline(app="table_maintenance.jobs:app")

ORDERS = "/tables/sales/orders/maintenance"
EVERYTHING = {"actions": [*reversed(ORDER)], "keep_hours": 0}


def test_maintenance_from_its_request_to_its_results(
    fenceline_app: TestedApp, client: TestClient, warehouse: Path
) -> None:
    before = load_table("sales", "orders").scan().to_arrow().sort_by("id")
    answer = client.post(ORDERS, json=EVERYTHING)
    assert answer.status_code == 202
    assert answer.json()["status"] == "queued"
    place = answer.headers["location"]
    assert place == f"/jobs/{answer.json()['job_id']}"
    assert fenceline_app.sync.drain() == 1
    shown = client.get(place).json()
    assert shown["status"] == "succeeded"
    # In their order, whatever the order they were asked for in.
    assert [(action["action"], action["status"]) for action in shown["actions"]] == [(name, "done") for name in ORDER]
    rewritten, expired, removed = (action["result"] for action in shown["actions"])
    assert rewritten == {"files_before": 12, "files_after": 1}
    assert expired["snapshots_before"] > 12
    assert expired["snapshots_after"] == 1
    assert removed["removed_files"] > 12
    table = load_table("sales", "orders")
    assert table.scan().to_arrow().sort_by("id") == before
    # The table itself tells which attempt wrote it.
    assert table.current_snapshot().summary["fenceline.job"] == answer.json()["job_id"]
    data = list((warehouse / "sales" / "orders" / "data").glob("*.parquet"))
    assert len(data) == 1


def test_a_second_run_finds_nothing_left_to_do(fenceline_app: TestedApp, client: TestClient) -> None:
    for _ in range(2):
        place = client.post(ORDERS, json={"actions": ["rewrite_data_files", "expire_snapshots"], "keep_hours": 0})
        fenceline_app.sync.drain()
    shown = client.get(place.headers["location"]).json()
    assert [action["result"] for action in shown["actions"]] == [
        {"files_before": 1, "files_after": 1},
        {"snapshots_before": 1, "snapshots_after": 1},
    ]


def test_a_table_has_one_job_at_a_time(fenceline_app: TestedApp, client: TestClient) -> None:
    make_sample_table("sales", "returns", appends=1)
    holder = client.post(ORDERS, json=EVERYTHING).json()["job_id"]
    refused = client.post(ORDERS, json=EVERYTHING)
    assert (refused.status_code, refused.json()["code"], refused.json()["holder"]) == (409, "resource_locked", holder)
    assert client.post("/tables/sales/returns/maintenance", json=EVERYTHING).status_code == 202
    assert fenceline_app.sync.drain() == 2
    assert client.post(ORDERS, json=EVERYTHING).status_code == 202


def test_a_quiesced_system_accepts_nothing(fenceline_app: TestedApp, client: TestClient) -> None:
    fenceline_app.sync.system.drain("upgrade of the catalogue")
    refused = client.post(ORDERS, json=EVERYTHING)
    assert (refused.status_code, refused.json()["code"]) == (503, "draining")
    assert "retry-after" in refused.headers
    fenceline_app.sync.system.resume()
    assert client.post(ORDERS, json=EVERYTHING).status_code == 202


def test_what_makes_no_sense_is_refused_and_leaves_nothing(fenceline_app: TestedApp, client: TestClient) -> None:
    for path, body, status in (
        ("/tables/sales/nothing/maintenance", EVERYTHING, 404),
        ("/tables/nowhere/orders/maintenance", EVERYTHING, 404),
        (ORDERS, {"actions": ["drop_table"]}, 422),
        (ORDERS, {"actions": []}, 422),
        (ORDERS, {"actions": ["expire_snapshots"], "keep_hours": -1}, 422),
    ):
        assert client.post(path, json=body).status_code == status
    fenceline_app.sync.assert_enqueued("maintain", count=0)
    assert client.post(ORDERS, json=EVERYTHING).status_code == 202  # no lock was left either
