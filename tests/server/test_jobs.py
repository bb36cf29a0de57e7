from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.operations import MISSING_ID
from tests.server.worker import Hand
from tests.sql.clock import clock_sql

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.errors import DatabaseUnavailable
from fenceline.runtime.database import Database
from fenceline.runtime.maintenance import Maintenance

JOB_FIELDS = {
    "id", "kind", "status", "waiting_for", "lane", "priority", "tenant", "args", "labels", "attempt", "max_attempts",
    "created_at", "created_by", "run_at", "claimed_at", "started_at", "finished_at", "worker", "phase", "progress",
    "result", "error", "errors", "cancel_requested_at", "retry_of", "parent", "delivery", "backend_job_id",
    "runner", "snapshot_hash", "requires_hash", "identity", "after", "key", "key_limit", "resource_lock", "dedupe_key",
    "expires_at", "timeout", "group", "retry",
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
            "dedupe_key": "d", "dedupe_until": "finished", "max_attempts": 9, "labels": {"project": "x"},
            "resource_lock": "r", "key": "k", "key_limit": 2, "needs_approval": True, "snapshot": {"v": 1},
            "requires_hash": "h", "after": {"jobs": [first["id"]], "policy": "always"}, "identity": "i",
        },
    )  # fmt: skip
    assert response.status_code == 202, response.text
    job = response.json()
    assert (job["status"], job["lane"], job["priority"], job["max_attempts"], job["tenant"], job["labels"]) == (
        "awaiting_approval", "maintenance", 7, 9, "acme", {"project": "x"},
    )  # fmt: skip


async def test_what_was_said_at_enqueue_can_be_read_back(as_role: AsRole) -> None:
    operator = await as_role("operator", tenant="acme")
    planned = (await operator.post("/v1/jobs", json={"kind": "plan", "snapshot": {"v": 1}})).json()
    at = "2099-01-01T00:00:00+00:00"
    said = {
        "identity": "deployer", "key": "k", "key_limit": 2, "resource_lock": "r", "dedupe_key": "d", "expires_at": at,
        "after": [planned["id"]],
    }  # fmt: skip
    body = {"kind": "deploy", "snapshot": {"v": 1}, "requires_hash": {"job": planned["id"]}, **said}
    made = await operator.post("/v1/jobs", json=body)
    assert made.status_code == 202, made.text
    job = (await operator.get(f"/v1/jobs/{made.json()['id']}")).json()
    assert job == made.json()
    assert {name: job[name] for name in said} == said
    assert job["requires_hash"] == job["snapshot_hash"] == planned["snapshot_hash"]
    assert (job["timeout"], job["group"], job["retry"]) == (None, None, None)
    assert "snapshot" not in job
    whole = (await operator.get(f"/v1/jobs/{job['id']}", params={"fields": "snapshot"})).json()
    assert whole == {**job, "snapshot": {"v": 1}}
    assert (await operator.get(f"/v1/jobs/{job['id']}", params={"fields": "all"})).status_code == 422


async def test_a_known_kind_gets_its_snapshot(as_role: AsRole, queue_app: Fenceline, connect: Connect) -> None:
    @queue_app.job()
    async def deploy(size: int) -> None: ...

    @deploy.snapshot
    def configuration(size: int) -> dict[str, int]:
        return {"machines": size}

    producer = await as_role("producer")
    for body in ({}, {"snapshot": {"machines": 9}}):
        response = await producer.post("/v1/jobs", json={"kind": "deploy", "args": {"size": 3}, **body})
        assert response.status_code == 202, response.text
    connection = await connect()
    kept = await connection.fetch("select snapshot ->> 'machines' as machines from fenceline.job order by id")
    assert [row["machines"] for row in kept] == ["3", "9"]


async def test_run_in_is_seconds_from_now(as_role: AsRole) -> None:
    producer = await as_role("producer")
    made = (await producer.post("/v1/jobs", json={"kind": "a", "run_in": 60})).json()
    at, created = (datetime.fromisoformat(made[name]) for name in ("run_at", "created_at"))
    assert made["status"] == "scheduled"
    assert timedelta(seconds=59) < at - created < timedelta(seconds=70)


async def test_repeats_and_duplicates_answer_200_with_the_first_job(as_role: AsRole) -> None:
    producer = await as_role("producer")
    for headers, extra in (({"Idempotency-Key": "once"}, {}), ({}, {"dedupe_key": "d"})):
        first = await producer.post("/v1/jobs", json={"kind": "a", **extra}, headers=headers)
        again = await producer.post("/v1/jobs", json={"kind": "a", **extra}, headers=headers)
        assert (first.status_code, again.status_code) == (202, 200)
        assert again.json() == first.json()
        assert again.headers["location"] == first.headers["location"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "No Name"},
        {"kind": 1},
        {"kind": "a", "args": []},
        {"kind": "a", "args": {"x": "\0"}},
        {"kind": "a", "args": {"\0": 1}},
        {"kind": "a", "tenant": "acme"},
        {"kind": "a", "timeout": 1},
        {"kind": "a", "idempotency_key": "x"},
        {"kind": "a", "lane": "nowhere"},
        {"kind": "a", "lane": "No Name"},
        {"kind": "a", "priority": 40000},
        {"kind": "a", "priority": "1"},
        {"kind": "a", "priority": True},
        {"kind": "a", "priority": 1.5},
        {"kind": "a", "run_at": "tomorrow"},
        {"kind": "a", "run_at": 1},
        {"kind": "a", "run_at": "2026-01-31T12:00:00"},
        {"kind": "a", "run_at": "2026-13-31T12:00:00Z"},
        {"kind": "a", "run_in": "60"},
        {"kind": "a", "run_in": True},
        {"kind": "a", "run_in": -1},
        {"kind": "a", "run_in": 60, "run_at": "2090-01-31T12:00:00Z"},
        {"kind": "a", "dedupe_key": ""},
        {"kind": "a", "dedupe_key": "x" * 513},
        {"kind": "a", "max_attempts": 0},
        {"kind": "a", "labels": {"project": 1}},
        {"kind": "a", "labels": []},
        {"kind": "a", "key_limit": 2},
        {"kind": "a", "key": "k", "key_limit": 0},
        {"kind": "a", "needs_approval": "yes"},
        {"kind": "a", "snapshot": {"x": "\0"}},
        {"kind": "a", "after": ["nonsense"]},
        {"kind": "a", "after": [MISSING_ID]},
        {"kind": "a", "after": {"group": "empty"}},
        {"kind": "a", "after": {"policy": "success"}},
        {"kind": "a", "after": MISSING_ID},
    ],
    ids=str,
)
async def test_bad_enqueues_are_422_and_leave_nothing(as_role: AsRole, body: dict[str, object]) -> None:
    producer = await as_role("producer")
    is_problem(await producer.post("/v1/jobs", json=body), 422, "invalid")
    assert (await producer.get("/v1/jobs")).json()["items"] == []


async def test_a_held_resource_is_409_and_names_the_holder(as_role: AsRole) -> None:
    producer = await as_role("producer")
    holder = (await producer.post("/v1/jobs", json={"kind": "a", "resource_lock": "r"})).json()
    response = await producer.post("/v1/jobs", json={"kind": "b", "resource_lock": "r"})
    is_problem(response, 409, "resource_locked")
    assert response.json()["holder"] == holder["id"]


async def test_large_args_are_413(as_role: AsRole) -> None:
    producer = await as_role("producer")
    for size in (1_100_000, 5_000_000):
        body = {"kind": "a", "args": {"x": "x" * size}}
        is_problem(await producer.post("/v1/jobs", json=body), 413, "too_large")


async def test_ids_are_tolerant_and_malformed_ones_are_missing_ones(as_role: AsRole) -> None:
    producer = await as_role("producer")
    job = (await producer.post("/v1/jobs", json={"kind": "a"})).json()
    assert (await producer.get(f"/v1/jobs/{job['id'].lower().replace('-', '')}")).json() == job
    mistyped = job["id"][:-1] + ("A" if job["id"][-1] != "A" else "B")
    for bad in (mistyped, "x", MISSING_ID, "%00", "..%2F.."):
        is_problem(await producer.get(f"/v1/jobs/{bad}"), 404, "not_found")


async def test_big_numbers_and_unicode_survive(as_role: AsRole) -> None:
    producer = await as_role("producer")
    args = {"n": 2**70, "f": 1.5, "text": "Grüße 💩 \u2028", "nested": {"a": [None, True, {}]}}
    job = (await producer.post("/v1/jobs", json={"kind": "a", "args": args})).json()
    assert job["args"] == args


async def test_no_database_is_503(as_role: AsRole, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = await as_role("producer")

    async def lost(*_: object) -> None:
        raise DatabaseUnavailable("the database cannot be reached")

    monkeypatch.setattr(Database, "call", lost)
    response = await producer.get("/v1/jobs")
    is_problem(response, 503, "unavailable")
    assert response.headers["retry-after"]
    is_problem(await producer.get("/readyz"), 503, "unavailable")
    assert (await producer.get("/healthz")).json() == {"status": "ok"}


async def test_health_readiness_and_metrics_need_no_token(anonymous: httpx.AsyncClient, as_role: AsRole) -> None:
    assert (await anonymous.get("/healthz")).json() == {"status": "ok"}
    assert (await anonymous.get("/readyz")).json() == {"status": "ok"}
    producer = await as_role("producer")
    await producer.post("/v1/jobs", json={"kind": "secret-kind"})
    text = (await anonymous.get("/metrics")).text
    assert 'fenceline_lane_depth{lane="default"} 1.0' in text
    assert 'fenceline_http_requests_total{method="POST",route="/v1/jobs",status="202"} 1.0' in text
    assert "secret-kind" not in text


@pytest.mark.parametrize(
    "body, fields",
    [
        ({"requires_hash": 5}, {"requires_hash"}),
        ({"requires_hash": {"jobb": "x"}}, {"requires_hash", "requires_hash.job", "requires_hash.jobb"}),
        ({"after": "x"}, {"after"}),
        ({"runner": {"zone": 1}}, {"runner", "runner.zone"}),
        ({"labels": {"a": 1}}, {"labels.a"}),
        ({"run_at": "noon"}, {"run_at"}),
    ],
)
async def test_refused_fields_are_named_as_they_were_sent(
    as_role: AsRole, body: dict[str, object], fields: set[str]
) -> None:
    refused = (await (await as_role("operator")).post("/v1/jobs", json={"kind": "a", **body})).json()
    assert {error["field"] for error in refused["errors"]} == fields
    assert "Value error" not in refused["detail"]


async def test_head_is_get_without_the_body(anonymous: httpx.AsyncClient, as_role: AsRole) -> None:
    viewer = await as_role("viewer")
    for client, path in (anonymous, "/healthz"), (anonymous, "/readyz"), (viewer, "/v1/jobs"), (anonymous, "/"):
        head, whole = await client.head(path), await client.get(path)
        assert (head.status_code, head.content, dict(head.headers)) == (200, b"", dict(whole.headers))
    assert (await anonymous.head("/v1/jobs")).status_code == 401
    assert (await viewer.head(f"/v1/jobs/{MISSING_ID}")).status_code == 404
    assert (await viewer.head("/v1/admin/drain")).status_code == 405


async def test_429_for_a_tenant_over_its_limit(as_role: AsRole, queue_app: Fenceline, connect: Connect) -> None:
    connection = await connect()
    await connection.execute(clock_sql())
    acme, other = await as_role("operator", tenant="acme"), await as_role("operator")
    jobs = [(await acme.post("/v1/jobs", json={"kind": "a"})).json() for _ in range(2)]
    first = {"Idempotency-Key": "i"}
    known = (await acme.post("/v1/jobs", json={"kind": "a"}, headers=first)).json()
    await acme.post(f"/v1/jobs/{jobs[0]['id']}/cancel")
    await queue_app.system.set_tenant_limit(2)
    for body in ({"kind": "a"}, {"kind": "a", "key": "k"}):
        refused = await acme.post("/v1/jobs", json=body)
        assert is_problem(refused, 429, "limited")
        assert refused.json()["tenant"] == "acme"
        assert "its limit of 2" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) > 0
    assert is_problem(await acme.post(f"/v1/jobs/{jobs[0]['id']}/retry"), 429, "limited")
    retried = await acme.post("/v1/jobs/bulk", json={"action": "retry", "ids": [jobs[0]["id"]]})
    assert retried.json()["reasons"] == {"limited": 1}
    again = await acme.post("/v1/jobs", json={"kind": "a"}, headers=first)
    assert (again.status_code, again.json()["id"]) == (200, known["id"])
    assert (await other.post("/v1/jobs", json={"kind": "a"})).status_code == 202
    await acme.post(f"/v1/jobs/{jobs[1]['id']}/cancel")
    await connection.execute(
        "update public.test_clock set now = now + interval '10 seconds'"
    )  # counts are good for that
    assert is_problem(await acme.post("/v1/jobs", json={"kind": "a"}), 429, "limited")
    await Maintenance(app_parts(queue_app).database().call).run_once(0)
    assert (await acme.post("/v1/jobs", json={"kind": "a"})).status_code == 202


async def test_the_steps_of_a_job_can_be_read(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()["id"]
    ((_, attempt_id),) = (await hand.claim()).items()
    values = (job, attempt_id)
    ahead = "select fenceline.list_steps_ahead(fenceline.parse_public_id($1), $2, '{load,publish}')"
    await hand.connection.execute(ahead, *values)
    record = "select fenceline.record_step(fenceline.parse_public_id($1), $2, 'load', null, '{\"rows\": 3}')"
    await hand.connection.execute(record, *values)
    steps = (await operator.get(f"/v1/jobs/{job}/steps")).json()
    assert [(step["name"], step["status"], step["result"]) for step in steps["items"]] == [
        ("load", "done", {"rows": 3}),
        ("publish", "listed", None),
    ]
    stranger = await as_role("operator", tenant="globex")
    assert (await stranger.get(f"/v1/jobs/{job}/steps")).status_code == 404


async def test_the_checkpoint_of_a_job_can_be_read(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()["id"]
    path = f"/v1/jobs/{job}/checkpoint"
    assert (await operator.get(path)).json() == {"state": None, "token": None, "updated_at": None}
    ((_, attempt_id),) = (await hand.claim()).items()
    save = "select fenceline.save_checkpoint(fenceline.parse_public_id($1), $2, '{\"row\": 12}')"
    await hand.connection.execute(save, job, attempt_id)
    kept = (await operator.get(path)).json()
    assert kept["state"] == {"row": 12}
    assert kept["token"]
    assert kept["updated_at"]
    stranger = await as_role("operator", tenant="globex")
    assert (await stranger.get(path)).status_code == 404


async def test_the_phases_of_a_job_can_be_read(as_role: AsRole, hand: Hand) -> None:
    operator = await as_role("operator")
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()["id"]
    ((_, attempt_id),) = (await hand.claim()).items()
    for call in (
        "set_progress(fenceline.parse_public_id($1), $2, 'load', '{}')",
        "move_items(fenceline.parse_public_id($1), $2, 'failed', '{a}', 'broken')",
        "set_progress(fenceline.parse_public_id($1), $2, 'store', '{\"done\": 1}')",
    ):
        await hand.connection.execute(f"select fenceline.{call}", job, attempt_id)
    load, store = (await operator.get(f"/v1/jobs/{job}/phases")).json()["items"]
    assert (load["phase"], load["attempt"], load["progress"]["items"]["failed"]) == (
        "load",
        1,
        [{"item": "a", "error": "broken"}],
    )
    assert load["ended_at"] == store["started_at"]
    assert (store["phase"], store["progress"], store["ended_at"]) == ("store", {"done": 1}, None)
    stranger = await as_role("operator", tenant="globex")
    assert (await stranger.get(f"/v1/jobs/{job}/phases")).status_code == 404
