"""Tokens end by themselves, are replaced by their bearers, and are good for what they are bound to only."""

import asyncio
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, client_of
from tests.server.operations import MISSING_ID
from tests.server.test_admin import enqueue
from tests.server.test_jobs import is_problem
from tests.support.patience import eventually

from fenceline.runtime.http_client import Client, TokenRefused
from fenceline.runtime.http_token import Rotation, Token

ROTATE = "/v1/tokens/rotate"


async def status(api: FastAPI, token: str, path: str = "/v1/runners", method: str = "POST") -> int:
    async with client_of(api, token) as client:
        return (await client.request(method, path, json={} if method == "POST" else None)).status_code


def client_for(api: FastAPI, token: Token) -> Client:
    return Client("http://127.0.0.1:8321", token, transport=httpx.ASGITransport(app=api))


async def test_a_token_ends_unless_somebody_says_never(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    made = (await admin.post("/v1/tokens", json={"role": "viewer"})).json()
    ends = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=89) < ends <= timedelta(days=90)
    assert (await admin.post("/v1/tokens", json={"role": "viewer", "expires_at": "never"})).json()["expires_at"] is None
    is_problem(await admin.post("/v1/tokens", json={"role": "viewer", "expires_at": "sometime"}), 422, "invalid")


async def test_a_runner_replaces_its_token_and_stays_the_runner(
    api: FastAPI, as_role: AsRole, connect: Connect
) -> None:
    admin = await as_role("platform_admin")
    body = {"role": "runner", "name": "far", "tenant": "acme", "lanes": ["default"]}
    first = (await admin.post("/v1/tokens", json=body)).json()
    async with client_of(api, first["token"]) as client:
        runner = (await client.post("/v1/runners", json={"name": "far"})).json()["id"]
        second = (await client.post(ROTATE)).json()
        assert (await client.post(f"/v1/runners/{runner}/heartbeat")).status_code == 200  # both are good for a moment
    assert second["token"] != first["token"]
    for field in ("name", "role", "tenant", "lanes", "kinds"):
        assert second[field] == first[field], field
    lives = [datetime.fromisoformat(t["expires_at"]) - datetime.fromisoformat(t["created_at"]) for t in (first, second)]
    assert abs(lives[0] - lives[1]) < timedelta(seconds=1)
    async with client_of(api, second["token"]) as client:
        assert (await client.post(f"/v1/runners/{runner}/heartbeat")).status_code == 200
        claim = await client.post("/v1/jobs/claim", json={"runner_id": runner})
        assert claim.status_code == 200
        assert (await client.post(ROTATE, json={"overlap_seconds": 0})).status_code == 200
        is_problem(await client.post(f"/v1/runners/{runner}/heartbeat"), 401, "unauthenticated")
    connection = await connect()
    overlap = "select extract(epoch from expires_at - clock_timestamp()) from fenceline.token where id = $1"
    assert 0 < await connection.fetchval(overlap, first["id"]) <= 300
    actions = await connection.fetch("select action, actor from fenceline.event where action = 'token.rotate'")
    assert [tuple(row) for row in actions] == [("token.rotate", "far")] * 2


async def test_an_answer_that_was_lost_is_asked_for_again(api: FastAPI, as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    first = (await admin.post("/v1/tokens", json={"role": "runner"})).json()["token"]
    async with client_of(api, first) as client:
        lost, kept = [(await client.post(ROTATE)).json()["token"] for _ in range(2)]
    assert await status(api, lost) == 401, "nobody has it, so nobody may use it"
    assert await status(api, kept) == 201


@pytest.mark.parametrize("revoked", [0, 1])
async def test_a_revoked_token_takes_those_that_replaced_it_along(
    api: FastAPI, as_role: AsRole, revoked: int, connect: Connect
) -> None:
    """Whoever had stolen the first one has the second by now, and with one of them would get a third."""
    admin = await as_role("platform_admin")
    made = [(await admin.post("/v1/tokens", json={"role": "runner"})).json()]
    async with client_of(api, made[0]["token"]) as client:
        made.append((await client.post(ROTATE)).json())
    other = (await admin.post("/v1/tokens", json={"role": "runner"})).json()
    assert await status(api, made[1]["token"]) == 201
    assert (await admin.delete(f"/v1/tokens/{made[revoked]['id']}")).status_code == 204
    for each in made:
        assert await status(api, each["token"]) == await status(api, each["token"], ROTATE) == 401
    assert await status(api, other["token"]) == 201
    events = await (await connect()).fetch("select subject from fenceline.event where action = 'token.revoke'")
    assert {row["subject"] for row in events} == {f"token {each['id']}" for each in made}


async def test_nobody_hands_out_what_is_kept_from_them(as_role: AsRole) -> None:
    """Neither args that their role hides, nor the jobs of others."""
    admin = await as_role("platform_admin")
    desk = ["jobs:read", "workers:view", "tokens:manage"]
    for name, permissions, own_jobs in (
        ("blind", [*desk, "jobs:hide_args"], False),
        ("narrow", desk, True),
        ("wide", desk, False),
        ("reader", ["jobs:read"], True),
        ("blind_reader", ["jobs:read", "jobs:hide_args"], True),
    ):
        body = {"permissions": permissions, "own_jobs": own_jobs}
        assert (await admin.post(f"/v1/roles/{name}", json=body)).status_code == 201
    for giver, given, expected in (
        ("blind", "reader", 403),
        ("blind", "blind_reader", 201),
        ("narrow", "viewer", 403),
        ("narrow", "reader", 201),
        ("wide", "viewer", 201),
    ):
        answer = await (await as_role(giver)).post("/v1/tokens", json={"role": given})
        assert answer.status_code == expected, (giver, given, answer.text)


async def test_only_those_who_run_jobs_replace_their_tokens(as_role: AsRole) -> None:
    for role in ("viewer", "producer", "operator", "fleet_operator"):
        is_problem(await (await as_role(role)).post(ROTATE), 403, "forbidden")
    is_problem(await (await as_role("runner")).post(ROTATE, json={"overlap_seconds": 1e9}), 422, "invalid")


async def test_the_runner_keeps_the_new_token_in_its_file(api: FastAPI, as_role: AsRole, tmp_path: Path) -> None:
    admin = await as_role("platform_admin")
    first = (await admin.post("/v1/tokens", json={"role": "runner"})).json()["token"]
    path = tmp_path / "token"
    path.write_text(f"{first}\n")
    token, beside = Token(first, path), Token(first, path)
    client = client_for(api, token)
    await Rotation(client, token, every_seconds=3600).run_once()
    new = path.read_text().strip()
    assert new not in ("", first)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # The helper, a process of its own, reads the file anew.
    assert (token.current(), beside.current()) == (new, new)
    assert (await client.ask_once("POST", "/v1/runners", "{}"))["id"]
    path.write_text("fl_nonsense\n")
    with pytest.raises(TokenRefused):
        await client.ask_once("POST", "/v1/runners", "{}")
    await client.close()


async def test_a_file_that_cannot_be_written_costs_nothing(api: FastAPI, as_role: AsRole, tmp_path: Path) -> None:
    admin = await as_role("platform_admin")
    first = (await admin.post("/v1/tokens", json={"role": "runner"})).json()["token"]
    token = Token(first, tmp_path / "gone" / "token")
    client = client_for(api, token)
    with pytest.raises(PermissionError):
        await Rotation(client, token, every_seconds=3600).run_once()
    with pytest.raises(ValueError, match="--token-file"):
        Rotation(client, Token(first), every_seconds=3600)
    assert await status(api, first) == 201
    await client.close()


async def test_rotation_happens_by_itself(api: FastAPI, as_role: AsRole, tmp_path: Path) -> None:
    admin = await as_role("platform_admin")
    first = (await admin.post("/v1/tokens", json={"role": "runner"})).json()["token"]
    path = tmp_path / "token"
    path.write_text(first)
    token = Token(first, path)
    client = client_for(api, token)
    running = asyncio.create_task(Rotation(client, token, every_seconds=0.05).run())

    async def is_replaced() -> bool:
        return bool(path.read_text().strip() != first)

    try:
        await eventually(is_replaced, "another token in the file")
    finally:
        running.cancel()
        await asyncio.wait({running})
        await client.close()


async def bound(as_role: AsRole, api: FastAPI, role: str, **binding: list[str]) -> httpx.AsyncClient:
    admin = await as_role("platform_admin")
    made = await admin.post("/v1/tokens", json={"role": role, "name": "bound", **binding})
    assert made.status_code == 201, made.text
    return client_of(api, made.json()["token"])


async def test_a_bound_token_enqueues_only_what_it_is_for(api: FastAPI, as_role: AsRole) -> None:
    fleet = await as_role("fleet_operator")
    await fleet.post("/v1/admin/workers/lanes/reports", json={"kinds": ["report"]})
    async with await bound(as_role, api, "operator", lanes=["default"], kinds=["ingest", "report"]) as client:
        job = await enqueue(client, "ingest")
        for body in (
            {"kind": "wipe"},
            {"kind": "ingest", "lane": "interactive"},
            {"kind": "report"},  # which goes to another lane by itself
            {"kind": "wipe", "dedupe_key": "k", "priority": 1},
        ):
            is_problem(await client.post("/v1/jobs", json=body), 403, "forbidden")
        await client.post(f"/v1/jobs/{job}/cancel")
        others: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("POST", f"/v1/jobs/{job}/retry", {}),
            ("POST", "/v1/jobs/bulk", {"action": "retry", "ids": [job]}),
            ("POST", "/v1/schedules", {"name": "s", "kind": "wipe", "cron": "0 3 * * *"}),
            ("POST", "/v1/triggers", {"name": "t", "kind": "wipe"}),
            ("PATCH", f"/v1/admin/workers/jobs/{job}/priority", {"priority": 1}),
        )
        for method, path, given in others:
            is_problem(await client.request(method, path, json=given), 403, "forbidden")
    assert {row["kind"] for row in (await fleet.get("/v1/jobs")).json()["items"]} == {"ingest"}


async def test_a_bound_token_signals_only_what_it_is_for(api: FastAPI, as_role: AsRole) -> None:
    operator = await as_role("operator")
    jobs = {kind: await enqueue(operator, kind) for kind in ("ingest", "wipe")}
    elsewhere = await enqueue(operator, "ingest", lane="interactive")
    async with await bound(as_role, api, "operator", lanes=["default"], kinds=["ingest"]) as client:
        assert (await client.post(f"/v1/jobs/{jobs['ingest']}/signals/go")).status_code == 202
        for job in (jobs["wipe"], elsewhere):
            is_problem(await client.post(f"/v1/jobs/{job}/signals/go"), 403, "forbidden")
        is_problem(await client.post(f"/v1/jobs/{MISSING_ID}/signals/go"), 404, "not_found")


async def test_a_bound_runner_claims_only_what_it_is_for(api: FastAPI, as_role: AsRole) -> None:
    producer = await as_role("producer")
    for kind in ("ingest", "wipe"):
        await enqueue(producer, kind)
        await enqueue(producer, kind, lane="interactive")
    async with await bound(as_role, api, "runner", lanes=["default"], kinds=["ingest"]) as client:
        is_problem(await client.post("/v1/runners", json={"lanes": ["interactive"]}), 403, "forbidden")
        is_problem(await client.post("/v1/runners", json={"kinds": ["wipe"]}), 403, "forbidden")
        runner = (await client.post("/v1/runners", json={"name": "far"})).json()
        assert (runner["lanes"], runner["kinds"]) == (["default"], ["ingest"])
        for more in ({"lanes": ["interactive"]}, {"kinds": ["wipe"]}):
            is_problem(await client.post("/v1/jobs/claim", json={"runner_id": runner["id"], **more}), 403, "forbidden")
        claimed = (await client.post("/v1/jobs/claim", json={"runner_id": runner["id"], "count": 10})).json()
        assert [(a["job"]["kind"], a["job"]["lane"]) for a in claimed["attempts"]] == [("ingest", "default")]


async def test_children_of_a_bound_runner_are_only_what_it_is_for(api: FastAPI, as_role: AsRole) -> None:
    fleet = await as_role("fleet_operator")
    await fleet.post("/v1/admin/workers/lanes/reports", json={"kinds": ["report"]})
    parent = await enqueue(await as_role("producer"), "ingest")
    async with await bound(as_role, api, "runner", lanes=["default"], kinds=["ingest", "report"]) as client:
        runner = (await client.post("/v1/runners", json={"name": "far"})).json()["id"]
        (attempt,) = (await client.post("/v1/jobs/claim", json={"runner_id": runner})).json()["attempts"]
        client.headers["Fenceline-Attempt"] = attempt["attempt_id"]
        children, end = f"/v1/jobs/{parent}/children", f"/v1/jobs/{parent}/status"
        for body in (
            {"kind": "wipe"},
            {"kind": "ingest", "lane": "interactive"},
            {"kind": "ingest", "defaults": {"lane": "interactive"}},
            {"kind": "report"},  # which goes to another lane by itself
        ):
            is_problem(await client.post(children, json=body), 403, "forbidden")
        loosened = {"kind": "ingest", "options": {"lane": "interactive", "bound_lanes": ["interactive"]}}
        is_problem(await client.post(children, json=loosened), 422, "invalid")
        made = await client.post(children, json={"kind": "ingest"})
        assert made.status_code == 201, made.text
        assert (await client.put(end, json={"status": "succeeded"})).status_code == 200
    jobs = (await fleet.get("/v1/jobs")).json()["items"]
    assert [(job["id"], job["kind"], job["lane"]) for job in jobs] == [
        (made.json()["ids"][0], "ingest", "default"),
        (parent, "ingest", "default"),
    ]


async def test_what_is_bound_stays_bound_when_it_is_replaced(api: FastAPI, as_role: AsRole) -> None:
    async with await bound(as_role, api, "runner", kinds=["ingest"]) as client:
        new = (await client.post(ROTATE)).json()["token"]
    async with client_of(api, new) as client:
        is_problem(await client.post("/v1/runners", json={"kinds": ["wipe"]}), 403, "forbidden")


async def test_tokens_of_before_are_good_for_ever_and_for_anything(connect: Connect) -> None:
    """Those that an older version made have neither a length of life nor a binding."""
    connection = await connect()
    await connection.execute(
        "insert into fenceline.token (hash, name, role, tenant, created_at) "
        "values (sha256('x'), 'old', 'runner', 'a', now())"
    )
    row = await connection.fetchrow("select expires_at, lanes, kinds from fenceline.token where name = 'old'")
    assert row is not None
    assert tuple(row) == (None, None, None)
    new = await connection.fetchval("select fenceline.rotate_token(sha256('x'), sha256('y'), 60) ->> 'expires_at'")
    assert new is None
