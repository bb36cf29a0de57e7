"""Lanes, status, bulk verbs, drain and the audit of all of it."""

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.operations import MISSING_ID
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand

LANE_FIELDS = {
    "name", "kinds", "slots", "in_use", "depth", "oldest_age_seconds", "poll_interval_ms", "stale_timeout_seconds",
    "on_stale", "enabled", "rate_per_second", "burst", "fair", "ageing_seconds", "needs_approval",
    "offline_timeout_seconds", "updated_at", "suspects_waiting", "suspects_running", "delivery", "unsent",
}  # fmt: skip


@pytest.fixture
async def operator(as_role: AsRole) -> httpx.AsyncClient:
    return await as_role("fleet_operator", name="ann")


async def enqueue(client: httpx.AsyncClient, kind: str = "a", **options: object) -> str:
    response = await client.post("/v1/jobs", json={"kind": kind, **options})
    assert response.status_code == 202, response.text
    return str(response.json()["id"])


async def test_seeded_lanes(operator: httpx.AsyncClient) -> None:
    page = (await operator.get("/v1/admin/workers/lanes")).json()
    assert page["next_cursor"] is None
    lanes = {lane["name"]: lane for lane in page["items"]}
    settings = {
        name: (lane["slots"], lane["poll_interval_ms"], lane["stale_timeout_seconds"]) for name, lane in lanes.items()
    }
    assert settings == {
        "default": (None, 5000, None),
        "interactive": (2, 2000, 1800),
        "maintenance": (1, 15000, 1800),
        "system": (1, 30000, 1800),
    }
    assert all(lane.keys() == LANE_FIELDS for lane in lanes.values())


async def test_a_lane_comes_changes_and_goes(operator: httpx.AsyncClient) -> None:
    path = "/v1/admin/workers/lanes/reports"
    made = await operator.post(path, json={"slots": 3, "kinds": ["report"]})
    assert (made.status_code, made.json()["slots"], made.json()["kinds"]) == (201, 3, ["report"])
    is_problem(await operator.post(path, json={}), 409, "conflict")
    changes = {
        "slots": 1, "kinds": ["report", "export"], "poll_interval_ms": 1000, "stale_timeout_seconds": 60,
        "on_stale": "fail", "enabled": False, "rate_per_second": 2.5, "burst": 5, "fair": True, "ageing_seconds": 30,
        "offline_timeout_seconds": 20, "delivery": "arq",
    }  # fmt: skip
    changed = (await operator.patch(path, json=changes)).json()
    assert {name: changed[name] for name in changes} == {**changes, "kinds": ["export", "report"]}
    cleared = (await operator.patch(path, json={"slots": None, "rate_per_second": None})).json()
    assert (cleared["slots"], cleared["rate_per_second"], cleared["burst"]) == (None, None, 5)
    assert (await operator.get(path)).json() == cleared
    for bad in (
        {"slots": -1},
        {"poll_interval_ms": None},
        {"name": "x"},
        {"depth": 1},
        {"slots": "3"},
        {"offline_timeout_seconds": 0},
        {"delivery": "inline"},
        {"delivery": "no such"},
        {"kinds": ["A B"]},
    ):
        is_problem(await operator.patch(path, json=bad), 422, "invalid")
    await enqueue(operator, "report")
    is_problem(await operator.delete(path), 409, "conflict")
    is_problem(await operator.delete("/v1/admin/workers/lanes/default"), 409, "conflict")
    await operator.post("/v1/jobs/bulk", json={"action": "cancel", "filter": {"kind": "report"}})
    assert (await operator.delete(path)).status_code == 204
    is_problem(await operator.get(path), 404, "not_found")


async def test_status_shows_slots_jobs_and_workers(operator: httpx.AsyncClient, hand: Hand, connect: Connect) -> None:
    running = await enqueue(operator, "busy", lane="interactive")
    await enqueue(operator, "next", lane="interactive")
    await hand.claim("interactive")
    status = (await operator.get("/v1/admin/workers/status")).json()
    lane = next(lane for lane in status["lanes"] if lane["name"] == "interactive")
    assert lane.keys() == LANE_FIELDS | {"jobs"}
    assert (lane["in_use"], lane["depth"], status["draining"]) == (1, 1, False)
    assert lane["oldest_age_seconds"] >= 0
    assert [(job["id"], job["kind"], job["worker"], job["status"]) for job in lane["jobs"]] == [
        (running, "busy", "hand", "claimed")
    ]
    (worker,) = status["workers"]
    assert (worker["name"], worker["version"], worker["status"], worker["in_use"]) == ("hand", "9.9", "online", 1)
    connection = await connect()
    await connection.execute("update fenceline.worker set heartbeat_at = now() - interval '40 seconds'")
    status = (await operator.get("/v1/admin/workers/status")).json()
    assert status["workers"][0]["status"] == "online"
    await connection.execute("update fenceline.worker set heartbeat_at = now() - interval '61 seconds'")
    await connection.execute("update fenceline.worker set lease_until = now() - interval '31 seconds'")
    await connection.execute("select fenceline.sweep()")
    await connection.execute("select fenceline.register_worker('far', p_runner => true)")
    await connection.execute("select fenceline.stop_worker(fenceline.register_worker('gone'))")
    status = (await operator.get("/v1/admin/workers/status")).json()
    assert [(w["name"], w["status"], w["in_use"]) for w in status["workers"]] == [("hand", "offline", 0)]
    assert [(w["name"], w["status"]) for w in status["runners"]] == [("far", "online")]


async def test_a_lane_says_when_its_runners_are_offline(operator: httpx.AsyncClient, connect: Connect) -> None:
    for lane, seconds in (("near", 20), ("far", 300)):
        path = f"/v1/admin/workers/lanes/{lane}"
        assert (await operator.post(path, json={"offline_timeout_seconds": seconds})).status_code == 201
    connection = await connect()
    for name, lanes in (("near", ["near"]), ("far", ["far"]), ("both", ["far", "near"]), ("usual", ["default"])):
        await connection.execute(
            "select fenceline.register_worker($1, 3600, p_lanes => $2, p_runner => true)", name, lanes
        )

    async def offline(silent: int) -> set[str]:
        await connection.execute(
            "update fenceline.worker set heartbeat_at = clock_timestamp() - make_interval(secs => $1)", silent
        )
        status = (await operator.get("/v1/admin/workers/status")).json()
        return {runner["name"] for runner in status["runners"] if runner["status"] == "offline"}

    assert await offline(15) == set()
    assert await offline(40) == {"near", "both"}
    assert await offline(70) == {"near", "both", "usual"}
    assert await offline(310) == {"near", "both", "usual", "far"}


async def test_operators_kill_and_reprioritise(operator: httpx.AsyncClient, hand: Hand) -> None:
    job = await enqueue(operator)
    changed = await operator.patch(f"/v1/admin/workers/jobs/{job}/priority", json={"priority": 99})
    assert (changed.status_code, changed.json()["priority"]) == (200, 99)
    for bad in ({}, {"priority": 40000}, {"priority": "9"}, {"priority": 1.5}):
        is_problem(await operator.patch(f"/v1/admin/workers/jobs/{job}/priority", json=bad), 422, "invalid")
    await hand.claim()
    is_problem(
        await operator.patch(f"/v1/admin/workers/jobs/{job}/priority", json={"priority": 1}), 409, "wrong_status"
    )
    killed = await operator.post(f"/v1/admin/workers/jobs/{job}/cancel", json={"force": True, "reason": "stuck"})
    assert killed.json()["status"] == "cancelled"


async def test_a_drained_system_refuses_new_jobs_with_503(operator: httpx.AsyncClient, hand: Hand) -> None:
    finished = await enqueue(operator)
    await hand.run()
    assert (await operator.post("/v1/admin/drain", json={"reason": "upgrade"})).json() == {"draining": True}
    for response in (
        await operator.post("/v1/jobs", json={"kind": "a"}),
        await operator.post(f"/v1/jobs/{finished}/retry"),
        await operator.post("/v1/jobs/bulk", json={"action": "retry", "ids": [finished]}),
    ):
        is_problem(response, 503, "draining")
        assert int(response.headers["retry-after"]) > 0
    assert (await operator.get("/v1/admin/workers/status")).json()["draining"] is True
    assert len((await operator.get("/v1/jobs")).json()["items"]) == 1
    assert (await operator.post("/v1/admin/resume")).json() == {"draining": False}
    await enqueue(operator)


async def test_every_action_is_audited(operator: httpx.AsyncClient, as_role: AsRole) -> None:
    job = await enqueue(await as_role("producer"), needs_approval=True)
    await operator.post(f"/v1/jobs/{job}/approve", json={"reason": "fine"})
    await operator.patch(f"/v1/admin/workers/jobs/{job}/priority", json={"priority": 3})
    await operator.post(f"/v1/jobs/{job}/cancel", json={"reason": "never mind"})
    await operator.post(f"/v1/jobs/{job}/retry")
    await operator.delete(f"/v1/jobs/{job}")
    await operator.patch("/v1/admin/workers/lanes/system", json={"slots": 2})
    await operator.post("/v1/admin/drain", json={"reason": "upgrade"})
    await operator.post("/v1/admin/resume")
    pages, cursor = [], None
    while True:
        params = {"limit": 3} if cursor is None else {"limit": 3, "cursor": cursor}
        page = (await operator.get("/v1/admin/audit", params=params)).json()
        pages += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [event["action"] for event in reversed(pages)][2:] == [
        "job.approve", "job.reprioritise", "job.cancel", "job.retry", "job.delete", "lane.change", "system.drain",
        "system.resume",
    ]  # fmt: skip
    assert {event["actor"] for event in pages[:-2]} == {"ann"}
    by_action = {event["action"]: event for event in pages}
    assert by_action["job.cancel"]["reason"] == "never mind"
    assert (by_action["job.cancel"]["before"], by_action["job.cancel"]["after"]) == (
        {"status": "queued"}, {"status": "cancelled"},
    )  # fmt: skip
    assert (by_action["lane.change"]["before"]["slots"], by_action["lane.change"]["after"]["slots"]) == (1, 2)
    assert by_action["system.drain"]["after"] == {"draining": True}
    of_job = (await operator.get("/v1/admin/audit", params={"subject": job})).json()["items"]
    assert len(of_job) == 5
    drains = (await operator.get("/v1/admin/audit", params={"action": "system.drain", "actor": "ann"})).json()["items"]
    assert [event["reason"] for event in drains] == ["upgrade"]


async def test_a_bulk_retry_by_filter_keeps_the_order_of_a_workflow_across_pages(
    operator: httpx.AsyncClient, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fenceline.server.bulk.PAGE", 1)
    load = await enqueue(operator, "load", labels={"flow": "f"})
    publish = await enqueue(operator, "publish", labels={"flow": "f"}, after=[load])
    await hand.run("failed_for_good")
    body = {"action": "retry", "filter": {"label": "flow:f"}}
    for dry_run in (True, False):
        answer = (await operator.post("/v1/jobs/bulk", json={**body, "dry_run": dry_run})).json()
        assert (answer["matched"], answer["changed"], answer["reasons"]) == (2, 2, {})
    jobs = (await operator.get("/v1/jobs", params={"label": "flow:f"})).json()["items"]
    assert [(job["kind"], job["retry_of"]) for job in jobs[:2]] == [("publish", publish), ("load", load)]
    assert [(job["status"], job["waiting_for"]) for job in jobs[:2]] == [("waiting", "dependencies"), ("queued", None)]


async def test_bulk_by_who_enqueued_and_by_a_text_in_the_error(
    operator: httpx.AsyncClient, as_role: AsRole, hand: Hand
) -> None:
    producer = await as_role("producer", name="shop")
    for client, error in ((producer, "the bank is closed"), (producer, "no paper"), (operator, "the bank is closed")):
        await enqueue(client)
        await hand.run("failed_for_good", error={"message": error})
    queued = await enqueue(producer)
    await enqueue(operator)

    async def counts(**filters: str) -> tuple[int, int]:
        body = {"action": "retry", "filter": filters, "dry_run": True}
        answer = (await operator.post("/v1/jobs/bulk", json=body)).json()
        return answer["matched"], answer["changed"]

    assert await counts(error="BANK") == (2, 2)
    assert await counts(error="bank", created_by="shop") == (1, 1)
    assert await counts(created_by="shop") == (3, 2)
    assert await counts(created_by="nobody") == (0, 0)
    for empty in ({"created_by": ""}, {"error": ""}):
        is_problem(await operator.post("/v1/jobs/bulk", json={"action": "cancel", "filter": empty}), 422, "invalid")
    # Who may act on his own jobs only gets no others by naming them.
    for name, matched in (("ann", 0), ("shop", 3)):
        body = {"action": "cancel", "filter": {"created_by": name}}
        assert (await producer.post("/v1/jobs/bulk", json=body)).json()["matched"] == matched
    assert (await operator.get(f"/v1/jobs/{queued}")).json()["status"] == "cancelled"


async def test_bulk_verbs_count_and_a_dry_run_changes_nothing(operator: httpx.AsyncClient, hand: Hand) -> None:
    queued = [await enqueue(operator, labels={"project": "x"}) for _ in range(5)]
    claimed = await enqueue(operator, "other", priority=9)
    await hand.run()
    assert (await operator.get(f"/v1/jobs/{claimed}")).json()["status"] == "succeeded"
    body = {"action": "cancel", "filter": {"label": "project:x"}, "dry_run": True, "reason": "tidy"}
    dry = (await operator.post("/v1/jobs/bulk", json=body)).json()
    assert dry == {
        "action": "cancel", "dry_run": True, "matched": 5, "changed": 5, "refused": 0, "reasons": {},
    }  # fmt: skip
    assert {job["status"] for job in (await operator.get("/v1/jobs", params={"kind": "a"})).json()["items"]} == {
        "queued"
    }
    assert (await operator.get("/v1/admin/audit", params={"action": "job.cancel"})).json()["items"] == []
    real = (await operator.post("/v1/jobs/bulk", json={**body, "dry_run": False})).json()
    assert real == {**dry, "dry_run": False}
    assert len((await operator.get("/v1/admin/audit", params={"action": "job.cancel"})).json()["items"]) == 5
    mixed = {"action": "retry", "ids": [*queued[:2], queued[0], "nonsense", MISSING_ID]}
    assert (await operator.post("/v1/jobs/bulk", json=mixed)).json() == {
        "action": "retry", "dry_run": False, "matched": 4, "changed": 2, "refused": 2, "reasons": {"not_found": 2},
    }  # fmt: skip
    again = {"action": "cancel", "filter": {"kind": ["a", "other"]}}
    assert (await operator.post("/v1/jobs/bulk", json=again)).json()["reasons"] == {"wrong_status": 6}
    raised = {"action": "reprioritise", "filter": {"status": "queued"}, "priority": 7}
    assert (await operator.post("/v1/jobs/bulk", json=raised)).json()["matched"] == 0


async def test_bulk_goes_through_all_pages(operator: httpx.AsyncClient, hand: Hand) -> None:
    await hand.connection.execute(
        "select fenceline.enqueue_many('many', array(select '{}'::json from generate_series(1, 210)))"
    )
    body = {"action": "reprioritise", "filter": {"kind": "many"}, "priority": 7}
    assert (await operator.post("/v1/jobs/bulk", json=body)).json()["changed"] == 210
    retried = {"action": "cancel", "filter": {"status": ["queued"], "kind": "many"}}
    assert (await operator.post("/v1/jobs/bulk", json=retried)).json()["changed"] == 210
    again = {"action": "retry", "filter": {"kind": "many"}}
    assert (await operator.post("/v1/jobs/bulk", json=again)).json()["changed"] == 210  # and not its own new jobs


@pytest.mark.parametrize(
    "body",
    [
        {"action": "cancel"},
        {"action": "cancel", "filter": {}},
        {"action": "cancel", "filter": {"kind": "a"}, "ids": []},
        {"action": "delete", "ids": []},
        {"action": "reprioritise", "ids": []},
        {"action": "cancel", "ids": [], "priority": 1},
        {"action": "cancel", "filter": {"status": "nonsense"}},
        {"action": "cancel", "filter": {"nonsense": "x"}},
        {"action": "cancel", "filter": {"label": "nocolon"}},
        {"action": "cancel", "ids": ["x"] * 1001},
    ],
)
async def test_bad_bulk_verbs(operator: httpx.AsyncClient, body: dict[str, object]) -> None:
    is_problem(await operator.post("/v1/jobs/bulk", json=body), 422, "invalid")


async def test_bulk_verbs_need_the_permission_of_their_action(as_role: AsRole) -> None:
    producer = await as_role("producer")
    job = await enqueue(producer)
    is_problem(await producer.post("/v1/jobs/bulk", json={"action": "approve", "ids": [job]}), 403, "forbidden")
    body = {"action": "reprioritise", "ids": [job], "priority": 1}
    is_problem(await producer.post("/v1/jobs/bulk", json=body), 403, "forbidden")
    assert (await producer.post("/v1/jobs/bulk", json={"action": "cancel", "ids": [job]})).json()["changed"] == 1
