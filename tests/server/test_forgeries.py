"""Forged, replayed and reordered attempt calls: every route, every way to get it wrong. None changes anything."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, make_token
from tests.server.runner_calls import Claimed, claim_one, register

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.routing import GuardedRoute

OWNER = str(uuid4())

#: Method, path below the job, body: a call of each route that would be accepted from whoever holds the attempt.
CALLS: dict[str, tuple[str, str, Any]] = {
    "running": ("PUT", "status", {"status": "running"}),
    "succeeded": ("PUT", "status", {"status": "succeeded", "result": 1}),
    "failed": ("PUT", "status", {"status": "failed", "error": "no", "retry": False}),
    "released": ("PUT", "status", {"status": "released"}),
    "snoozed": ("PUT", "status", {"status": "snoozed", "delay_seconds": 1}),
    "crashed": ("PUT", "status", {"status": "crashed"}),
    "logs": ("POST", "logs", {"lines": [{"message": "forged"}]}),
    "progress": ("PUT", "progress", {"done": 1}),
    "phase": ("PUT", "phase", {"phase": "forged"}),
    "items": ("PUT", "items", {"to": "completed", "items": ["a"]}),
    "checkpoint": ("PUT", "checkpoint", {"state": {"forged": True}}),
    "steps": ("PUT", "steps", {"names": ["forged"]}),
    "step": ("PUT", "steps/load", {"result": 1}),
    "locks": ("POST", "locks", {"namespace": "n", "name": "x", "owner": OWNER}),
    "release": ("DELETE", f"locks/{OWNER}", None),
    "children": ("POST", "children", {"kind": "work", "many": [{}]}),
    "guard": ("POST", "guard", {"resource": "r", "version": 1}),
    "start": ("GET", "start", None),
    "snapshot": ("POST", "snapshot-hash", {"snapshot": 1}),
}

#: The answer to each way of getting it wrong.
WRONG = {
    "no attempt header": (422, "invalid"),
    "no uuid": (409, "stale_attempt"),
    "random uuid": (409, "stale_attempt"),
    "another job's attempt": (409, "stale_attempt"),
    "a worker's attempt": (403, "forbidden"),
    "other runner's attempt": (403, "forbidden"),
    "ended attempt": (409, "stale_attempt"),
    "reclaimed attempt": (409, "stale_attempt"),
    "other tenant's token": (404, "not_found"),
    "wrong role": (403, "forbidden"),
    "no token": (401, "unauthenticated"),
    "missing job": (404, "not_found"),
    "malformed job": (404, "not_found"),
}
#: A look at a job whose attempt has ended does no harm, and a lock is given back with its attempt.
HARMLESS = {(way, name) for way in ("ended attempt", "reclaimed attempt") for name in ("start", "snapshot", "release")}

TABLES = ("ready", "running", "history", "timer", "held", "log", "progress", "step", "checkpoint", "child", "job",
          "attempt_lock", "lock_wait", "guard")  # fmt: skip


STATE = "select " + ", ".join(
    f"(select array_agg(t::text order by t::text) from fenceline.{table} t)" for table in TABLES
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One live attempt of ours, and what a forger may have."""

    mine: Claimed
    theirs: Claimed
    ended: Claimed
    reclaimed: Claimed
    worker_job: str
    worker_attempt: str
    other_token: httpx.AsyncClient
    other_tenant: httpx.AsyncClient
    producer: httpx.AsyncClient
    anonymous: httpx.AsyncClient
    connection: "asyncpg.Connection[asyncpg.Record]"

    async def state(self) -> tuple[Any, ...]:
        """All that an attempt call could change."""
        return tuple(await self.connection.fetchrow(STATE) or ())

    def forged(self, way: str) -> tuple[httpx.AsyncClient, str, dict[str, str]]:
        """Who calls, for which job, with which headers."""
        mine = self.mine
        right = {"Fenceline-Attempt": mine.attempt_id}
        ways: dict[str, tuple[httpx.AsyncClient, str, dict[str, str]]] = {
            "no attempt header": (mine.client, mine.job, {}),
            "no uuid": (mine.client, mine.job, {"Fenceline-Attempt": "forged"}),
            "random uuid": (mine.client, mine.job, {"Fenceline-Attempt": str(uuid4())}),
            "another job's attempt": (mine.client, self.theirs.job, right),
            "a worker's attempt": (mine.client, self.worker_job, {"Fenceline-Attempt": self.worker_attempt}),
            "other runner's attempt": (self.other_token, mine.job, right),
            "ended attempt": (mine.client, self.ended.job, self.ended.headers),
            "reclaimed attempt": (mine.client, self.reclaimed.job, self.reclaimed.headers),
            "other tenant's token": (self.other_tenant, mine.job, right),
            "wrong role": (self.producer, mine.job, right),
            "no token": (self.anonymous, mine.job, right),
            "missing job": (mine.client, "00000000000-00", right),
            "malformed job": (mine.client, "nonsense", right),
        }
        return ways[way]


@pytest.fixture
async def scene(
    as_role: AsRole, queue_app: Fenceline, connect: Connect, anonymous: httpx.AsyncClient, api: FastAPI
) -> Scene:
    connection = await connect()
    mine, other_token = await as_role("runner", tenant="acme"), await as_role("runner", tenant="acme")
    runner = await register(mine)

    async def claimed(client: httpx.AsyncClient, runner_id: int) -> Claimed:
        await queue_app.enqueue("work", tenant="acme")
        return await claim_one(client, runner_id)

    ended = await claimed(mine, runner)
    assert (await ended.finish("succeeded", result="first")).status_code == 200
    lost = await register(mine)
    reclaimed = await claimed(mine, lost)
    await connection.execute("update fenceline.worker set lease_until = now() - interval '1 s' where id = $1", lost)
    await connection.execute("select fenceline.sweep()")
    again = await claim_one(mine, runner)
    assert (again.job, again.attempt_id != reclaimed.attempt_id) == (reclaimed.job, True)
    live = await claimed(mine, runner)
    theirs = await claimed(other_token, await register(other_token))
    await queue_app.enqueue("work", tenant="acme")
    worker = await connection.fetchval("select fenceline.register_worker('w')")
    row = await connection.fetchrow("select job_id, attempt_id from fenceline.claim_jobs($1)", worker)
    assert row is not None
    return Scene(
        mine=live,
        theirs=theirs,
        ended=ended,
        reclaimed=reclaimed,
        worker_job=await connection.fetchval("select fenceline.public_id($1)", row["job_id"]),
        worker_attempt=str(row["attempt_id"]),
        other_token=other_token,
        other_tenant=await as_role("runner", tenant="other"),
        producer=await as_role("operator", tenant="acme"),
        anonymous=anonymous,
        connection=connection,
    )


async def forge(scene: Scene, way: str, name: str) -> httpx.Response:
    client, job, headers = scene.forged(way)
    method, path, body = CALLS[name]
    return await client.request(method, f"/v1/jobs/{job}/{path}", json=body, headers=headers)


async def wrongly_accepted(scene: Scene) -> str | None:
    """Every route × every way to get it wrong; the first answered otherwise than it should, or with an effect."""
    before = await scene.state()
    for way, (status, code) in WRONG.items():
        for name in CALLS:
            response = await forge(scene, way, name)
            if (way, name) in HARMLESS:
                fine = response.status_code in (200, 204)
            else:
                fine = response.status_code == status and response.json()["code"] == code
            after = await scene.state()
            if not fine or after != before:
                return f"{way}, {name}: {response.status_code} {response.text}, changed: {after != before}"
    return None


async def test_no_forged_call_is_accepted(scene: Scene) -> None:
    assert await wrongly_accepted(scene) is None
    # And the same calls are accepted from whoever holds the attempt.
    for name in ["running", *(name for name, call in CALLS.items() if call[1] != "status"), "succeeded"]:
        method, path, body = CALLS[name]
        response = await scene.mine.client.request(
            method, f"/v1/jobs/{scene.mine.job}/{path}", json=body, headers=scene.mine.headers
        )
        assert response.status_code in (200, 201, 204), f"{name}: {response.text}"


async def test_replays_with_another_outcome_and_reordered_calls_are_refused(scene: Scene) -> None:
    attempt = scene.mine
    first = await attempt.finish("succeeded", result={"n": 1})
    assert first.status_code == 200
    before = await scene.state()
    for body in (
        {"status": "failed"}, {"status": "failed", "retry": False}, {"status": "released"}, {"status": "cancelled"},
        {"status": "snoozed", "delay_seconds": 0}, {"status": "succeeded_with_errors", "errors": ["x"]},
        {"status": "succeeded", "result": {"n": 2}}, {"status": "succeeded"}, {"status": "running"},
        {"status": "crashed"},
    ):  # fmt: skip
        response = await attempt.put("status", body)
        assert (response.status_code, response.json()["code"]) == (409, "stale_attempt"), body
    for name, (method, path, body) in CALLS.items():
        if path not in ("status", "start", "snapshot-hash") and name != "release":
            response = await attempt.client.request(
                method, f"/v1/jobs/{attempt.job}/{path}", json=body, headers=attempt.headers
            )
            assert (response.status_code, response.json()["code"]) == (409, "stale_attempt"), name
    again = await attempt.finish("succeeded", result={"n": 1})
    assert (again.status_code, again.json()) == (200, first.json())
    assert await scene.state() == before


async def test_a_batch_accepts_no_forged_end_either(scene: Scene) -> None:
    before = await scene.state()
    ways = {
        "other runner's attempt": "forbidden", "random uuid": "stale", "other tenant's token": "not_found",
        "a worker's attempt": "forbidden", "another job's attempt": "stale", "ended attempt": "stale",
        "reclaimed attempt": "stale", "missing job": "not_found", "malformed job": "not_found",
    }  # fmt: skip
    for way, verdict in ways.items():
        client, job, headers = scene.forged(way)
        item = {"job": job, "attempt_id": headers["Fenceline-Attempt"], "status": "failed"}
        response = await client.post("/v1/jobs/finish", json={"attempts": [item]})
        assert [said["verdict"] for said in response.json()["attempts"]] == [verdict], way
    for way, status in (("wrong role", 403), ("no token", 401)):
        client, job, headers = scene.forged(way)
        item = {"job": job, "attempt_id": headers["Fenceline-Attempt"], "status": "failed"}
        assert (await client.post("/v1/jobs/finish", json={"attempts": [item]})).status_code == status
    assert await scene.state() == before


#: The fence, and the door before it, taken out.
MUTANTS = {
    "finish without a fence": (
        "finish_attempts",
        ("where r.job_id = g.job_id and r.attempt_id = g.attempt_id", "where r.job_id = g.job_id"),
    ),
    "a live attempt without a fence": (
        "live_attempt",
        ("where r.job_id = p_job_id and r.attempt_id = p_attempt_id", "where r.job_id = p_job_id"),
    ),
    "no owner asked for": ("runner_attempt", ("w.runner and w.owner = p_owner", "true")),
    "no tenant asked for": ("runner_attempt", ("(p_tenant is null or j.tenant = p_tenant)", "true")),
    "another result taken for a replay": (
        "finish_as_runner",
        ("where h.result is not distinct from p_results[v_late.i]", "where true"),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_without_the_rule_forged_calls_are_seen_to_be_accepted(scene: Scene, name: str) -> None:
    function, (old, new) = MUTANTS[name]
    text = await scene.connection.fetchval(
        "select pg_get_functiondef(p.oid) from pg_proc p "
        "where p.pronamespace = 'fenceline'::regnamespace and p.proname = $1",
        function,
    )
    assert text.count(old) == 1
    await scene.connection.execute(text.replace(old, new))
    if name == "another result taken for a replay":
        assert (await scene.ended.finish("succeeded", result="second")).status_code == 200
    else:
        assert await wrongly_accepted(scene) is not None


async def test_every_attempt_route_is_in_the_list(queue_app: Fenceline) -> None:
    api = create_app(app=queue_app)
    named = {path for _method, path, _body in CALLS.values()}
    for route in api.routes:
        if isinstance(route, GuardedRoute) and any(
            field.alias == "Fenceline-Attempt" for field in route.dependant.header_params
        ):
            below = route.path_format.removeprefix("/v1/jobs/{id}/").replace("{name}", "load").replace("{owner}", OWNER)
            assert below in named, route.path


async def test_a_runner_is_its_token_s_alone(as_role: AsRole, queue_app: Fenceline) -> None:
    mine, other, admin = await as_role("runner"), await as_role("runner"), await as_role("platform_admin")
    await queue_app.enqueue("work")
    runner_id = await register(mine)
    for client in (other, admin):
        for path, body in (
            (f"/v1/runners/{runner_id}/heartbeat", {"attempts": []}),
            (f"/v1/runners/{runner_id}/wait", {"lanes": ["default"], "seconds": 0}),
            (f"/v1/runners/{runner_id}/stop", {}),
            (f"/v1/runners/{runner_id}/crash", {}),
            ("/v1/jobs/claim", {"runner_id": runner_id}),
        ):
            response = await client.post(path, json=body)
            assert (response.status_code, response.json()["code"]) == (404, "not_found"), path
    for missing in ("0", "-1", "x", "99999999999", "1.5"):
        assert (await mine.post(f"/v1/runners/{missing}/heartbeat")).status_code == 404
    # A token of the same name is another token.
    assert await make_token(queue_app, "runner", name="same") != await make_token(queue_app, "runner", name="same")
    assert len((await mine.post("/v1/jobs/claim", json={"runner_id": runner_id})).json()["attempts"]) == 1
