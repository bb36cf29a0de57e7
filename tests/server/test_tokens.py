"""Tokens and roles: who may hand out what, how long it holds, what is kept of it."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, client_of, make_token
from tests.server.test_jobs import is_problem

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.model.secret import hash_token
from fenceline.server import auth
from fenceline.server.run import NoToken, open_doors
from fenceline.server.server_settings import ServerSettings


async def test_a_token_is_shown_once_and_only_its_hash_is_kept(api: FastAPI, as_role: AsRole, connect: Connect) -> None:
    admin = await as_role("platform_admin", name="root")
    made = await admin.post("/v1/tokens", json={"role": "producer", "tenant": "acme", "name": "ci"})
    assert made.status_code == 201
    token = made.json()["token"]
    assert token.startswith("fl_")
    assert len(token) == 3 + 43  # 256 bits
    listed = (await admin.get("/v1/tokens")).json()["items"]
    assert (listed[0]["name"], listed[0]["role"], listed[0]["tenant"], listed[0]["created_by"]) == (
        "ci", "producer", "acme", "root",
    )  # fmt: skip
    assert token not in str(listed)
    connection = await connect()
    assert await connection.fetchval("select hash from fenceline.token where name = 'ci'") == hash_token(token)
    kept = await connection.fetch(
        "select t::text from fenceline.token t union all select e::text from fenceline.event e"
    )
    assert not any(token in row[0] for row in kept)
    async with client_of(api, token) as ci:
        job = (await ci.post("/v1/jobs", json={"kind": "a"})).json()
    assert (job["tenant"], job["created_by"]) == ("acme", "ci")


async def test_expired_and_revoked_tokens_are_refused(
    api: FastAPI, as_role: AsRole, queue_app: Fenceline, connect: Connect
) -> None:
    admin = await as_role("platform_admin")
    soon = datetime.now(UTC) + timedelta(hours=1)
    token = await make_token(queue_app, "viewer", name="v", expires_at=soon)
    async with client_of(api, token) as viewer:
        assert (await viewer.get("/v1/jobs")).status_code == 200
        connection = await connect()
        await connection.execute("update fenceline.token set expires_at = now() - interval '1 second' where name = 'v'")
        is_problem(await viewer.get("/v1/jobs"), 401, "unauthenticated")
        await connection.execute("update fenceline.token set expires_at = null where name = 'v'")
        assert (await viewer.get("/v1/jobs")).status_code == 200
        token_id = (await admin.get("/v1/tokens")).json()["items"][0]["id"]
        assert (await admin.delete(f"/v1/tokens/{token_id}")).status_code == 204
        assert (await admin.delete(f"/v1/tokens/{token_id}")).status_code == 204
        is_problem(await viewer.get("/v1/jobs"), 401, "unauthenticated")


async def test_the_answer_about_a_token_is_remembered_for_its_time_only(
    queue_app: Fenceline, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fenceline.server.asgi_app import create_app  # noqa: PLC0415 - a server of its own

    token = await make_token(queue_app, "viewer")
    api = create_app(ServerSettings(maintain=False, token_cache_seconds=0.5), queue_app)
    now = 1000.0  # of the server's clock, which stands still however long the requests take
    monkeypatch.setattr(auth, "time", SimpleNamespace(monotonic=lambda: now))
    connection = await connect()
    authenticator = api.state.server.authenticator
    asked: list[bytes] = []
    ask = authenticator._ask

    async def counted(token_hash: bytes, call: Any) -> Any:
        asked.append(token_hash)
        return await ask(token_hash, call)

    authenticator._ask = counted
    async with client_of(api, token) as viewer:
        answers = await asyncio.gather(*(viewer.get("/v1/jobs") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        assert len(asked) == 1
        await connection.execute("update fenceline.token set revoked_at = now()")
        now += 0.25
        assert (await viewer.get("/v1/jobs")).status_code == 200
        assert len(asked) == 1
        now += 0.25
        is_problem(await viewer.get("/v1/jobs"), 401, "unauthenticated")
        assert len(asked) == 2
    await api.state.server.database.close()


async def test_last_used_is_coarse(as_role: AsRole, connect: Connect) -> None:
    viewer = await as_role("viewer", name="v")
    connection = await connect()
    used = "select last_used_at from fenceline.token where name = 'v'"
    assert await connection.fetchval(used) is None
    await viewer.get("/v1/jobs")
    first = await connection.fetchval(used)
    assert first is not None
    await viewer.get("/v1/jobs")
    assert await connection.fetchval(used) == first
    await connection.execute("update fenceline.token set last_used_at = now() - interval '61 seconds'")
    await viewer.get("/v1/jobs")
    assert await connection.fetchval(used) > first


async def test_nobody_hands_out_what_he_does_not_have(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    made = await admin.post("/v1/roles/janitor", json={"permissions": ["tokens:manage", "jobs:read", "jobs:enqueue"]})
    assert made.status_code == 201, made.text
    janitor = await as_role("janitor", tenant="acme")
    assert (await janitor.post("/v1/tokens", json={"role": "janitor"})).json()["tenant"] == "acme"
    is_problem(await janitor.post("/v1/tokens", json={"role": "platform_admin"}), 403, "forbidden")
    is_problem(await janitor.post("/v1/tokens", json={"role": "producer"}), 403, "forbidden")  # jobs:cancel
    is_problem(await janitor.post("/v1/tokens", json={"role": "janitor", "tenant": "default"}), 403, "forbidden")
    is_problem(await janitor.post("/v1/roles/boss", json={"permissions": ["jobs:read"]}), 403, "forbidden")
    is_problem(await janitor.patch("/v1/roles/janitor", json={"permissions": ["jobs:read"]}), 403, "forbidden")
    is_problem(await janitor.delete("/v1/roles/janitor"), 403, "forbidden")
    listed = (await janitor.get("/v1/tokens")).json()["items"]
    assert {token["tenant"] for token in listed} == {"acme"}
    foreign = (await admin.get("/v1/tokens")).json()["items"][-1]
    assert foreign["tenant"] == "default"
    is_problem(await janitor.delete(f"/v1/tokens/{foreign['id']}"), 404, "not_found")


async def test_roles_of_ones_own(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    body = {"permissions": ["audit:read"]}
    made = await admin.post("/v1/roles/auditor", json=body)
    assert made.json() == {
        "name": "auditor", "permissions": ["audit:read"], "own_jobs": True, "all_tenants": False, "built_in": False,
    }  # fmt: skip
    is_problem(await admin.post("/v1/roles/auditor", json=body), 409, "conflict")
    is_problem(await admin.post("/v1/roles/No Name", json=body), 422, "invalid")
    is_problem(await admin.post("/v1/roles/x", json={"permissions": ["jobs:reed"]}), 422, "invalid")
    is_problem(await admin.patch("/v1/roles/viewer", json=body), 409, "conflict")
    is_problem(await admin.delete("/v1/roles/viewer"), 409, "conflict")
    auditor = await as_role("auditor")
    assert (await auditor.get("/v1/admin/audit")).status_code == 200
    is_problem(await auditor.get("/v1/jobs"), 403, "forbidden")
    await admin.patch("/v1/roles/auditor", json={"permissions": ["jobs:read"]})
    is_problem(await auditor.get("/v1/admin/audit"), 403, "forbidden")
    assert (await auditor.get("/v1/jobs")).status_code == 200
    is_problem(await admin.delete("/v1/roles/auditor"), 409, "conflict")
    token_id = (await admin.get("/v1/tokens", params={"limit": 1})).json()["items"][0]["id"]
    await admin.delete(f"/v1/tokens/{token_id}")
    assert (await admin.delete("/v1/roles/auditor")).status_code == 204
    events = (await admin.get("/v1/admin/audit")).json()["items"]
    assert [event["action"] for event in events[:3]] == ["role.delete", "token.revoke", "role.change"]
    assert events[2]["before"]["permissions"] == ["audit:read"]
    assert events[2]["after"]["permissions"] == ["jobs:read"]


async def test_unknown_roles_and_names_are_refused(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    for body in (
        {"role": "nonsense"},
        {"role": "viewer", "tenant": "No Tenant"},
        {"role": "viewer", "name": "oidc:me"},
        {"role": "viewer", "name": ""},
        {"role": "viewer", "expires_at": "2020-01-01T00:00:00Z"},
    ):
        is_problem(await admin.post("/v1/tokens", json=body), 422, "invalid")


async def test_the_first_start_makes_a_token_and_the_second_does_not(queue_app: Fenceline, connect: Connect) -> None:
    database, settings = app_parts(queue_app).database(), ServerSettings()
    tokens = await asyncio.gather(open_doors(database, settings), open_doors(database, settings))
    assert sorted(token is None for token in tokens) == [False, True]
    assert await open_doors(database, settings) is None
    connection = await connect()
    await connection.execute("update fenceline.token set revoked_at = now()")
    with pytest.raises(NoToken, match="no token is valid"):
        await open_doors(database, settings)
    assert await open_doors(database, ServerSettings(no_auth=True)) is None


async def test_without_authentication_only_loopback_is_served(queue_app: Fenceline) -> None:
    from fenceline.server.asgi_app import create_app  # noqa: PLC0415 - a server of its own

    for host in ("0.0.0.0", "192.168.0.1", "example.com"):  # noqa: S104 - refused
        with pytest.raises(ValueError, match="loopback only"):
            ServerSettings(no_auth=True, host=host)
    api = create_app(ServerSettings(no_auth=True, maintain=False), queue_app)
    async with client_of(api) as anybody:
        made = await anybody.post("/v1/jobs", json={"kind": "a"})
        assert (made.status_code, made.json()["created_by"]) == (202, "anonymous")
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
            answer: httpx.Response = await anybody.post("/v1/admin/drain", headers=headers)
            is_problem(answer, 403, "forbidden")
        assert (await anybody.post("/v1/admin/drain", headers={"Origin": "http://localhost:8321"})).status_code == 200
    await api.state.server.database.close()


async def test_an_id_of_thousands_of_digits_is_one_that_is_not_there(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    for path in ("/v1/tokens", "/v1/hooks"):
        is_problem(await admin.delete(f"{path}/{'9' * 5000}"), 404, "not_found")
