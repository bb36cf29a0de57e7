"""Sessions of people in browsers: opened once, kept like tokens, and of no use to a foreign page."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, client_of, make_token, running
from tests.server.watching import Watcher, Work, serving
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

ORIGIN = "http://127.0.0.1:8321"
FOREIGN = "https://evil.example"


async def sign_in(client: httpx.AsyncClient, token: str) -> str:
    """Leaves the cookie in the client; the CSRF token."""
    answer = await client.post("/v1/session", json={"token": token})
    assert answer.status_code == 200, answer.text
    csrf: str = answer.json()["csrf"]
    return csrf


def changing(csrf: str, origin: str | None = ORIGIN) -> dict[str, str]:
    return {"X-Fenceline-CSRF": csrf} | ({} if origin is None else {"Origin": origin})


async def test_a_token_opens_a_session_and_signing_out_ends_it(
    anonymous: httpx.AsyncClient, queue_app: Fenceline
) -> None:
    token = await make_token(queue_app, "operator", name="ann", tenant="acme")
    assert (await anonymous.get("/v1/session")).status_code == 401
    answer = await anonymous.post("/v1/session", json={"token": token})
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"))
    assert token not in cookie
    who = (await anonymous.get("/v1/session")).json()
    assert (who["actor"], who["role"], who["tenant"]) == ("ann", "operator", "acme")
    assert (await anonymous.get("/v1/jobs")).status_code == 200
    secret = anonymous.cookies["fenceline"]
    assert (await anonymous.delete("/v1/session", headers=changing(who["csrf"]))).status_code == 204
    anonymous.cookies.set("fenceline", secret)
    assert (await anonymous.get("/v1/jobs")).status_code == 401


async def test_over_tls_the_cookie_is_bound_to_host_and_tls(api: FastAPI, queue_app: Fenceline) -> None:
    token = await make_token(queue_app, "viewer")
    transport = httpx.ASGITransport(app=api)
    async with httpx.AsyncClient(transport=transport, base_url="https://127.0.0.1:8321") as client:
        cookie = (await client.post("/v1/session", json={"token": token})).headers["set-cookie"]
    assert cookie.startswith("__Host-fenceline=")
    assert "Secure" in cookie


async def test_the_cookie_is_no_token_and_a_token_is_no_cookie(
    anonymous: httpx.AsyncClient, queue_app: Fenceline
) -> None:
    token = await make_token(queue_app, "viewer")
    await sign_in(anonymous, token)
    secret = anonymous.cookies["fenceline"]
    anonymous.cookies.clear()
    assert (await anonymous.get("/v1/jobs", headers={"Authorization": f"Bearer {secret}"})).status_code == 401
    anonymous.cookies.set("fenceline", token)
    assert (await anonymous.get("/v1/jobs")).status_code == 401


async def test_a_code_opens_one_session(anonymous: httpx.AsyncClient, as_role: AsRole) -> None:
    ann = await as_role("operator", name="ann")
    made = (await ann.post("/v1/session/codes")).json()
    assert (await anonymous.post("/v1/session", json={"code": made["code"]})).json()["actor"] == "ann"
    assert (await anonymous.post("/v1/session", json={"code": made["code"]})).status_code == 401


async def test_a_code_that_is_too_old_opens_nothing(
    anonymous: httpx.AsyncClient, as_role: AsRole, connect: Connect
) -> None:
    made = (await (await as_role("viewer")).post("/v1/session/codes")).json()
    await (await connect()).execute("update fenceline.login_code set expires_at = now() - interval '1 second'")
    assert (await anonymous.post("/v1/session", json={"code": made["code"]})).status_code == 401


async def test_a_session_ends_with_its_token(
    anonymous: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    await sign_in(anonymous, await make_token(queue_app, "viewer"))
    connection = await connect()
    token_id = await connection.fetchval("select max(id) from fenceline.token")
    assert (await anonymous.get("/v1/jobs")).status_code == 200
    await app_parts(queue_app).database().call(calls.tokens.revoke_token(token_id, actor="test", tenant=None))
    assert (await anonymous.get("/v1/jobs")).status_code == 401


async def test_a_session_lasts_no_longer_than_its_token_or_its_time(
    anonymous: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    await sign_in(anonymous, await make_token(queue_app, "viewer", expires_at=soon))
    connection = await connect()
    assert await connection.fetchval("select expires_at from fenceline.session") == soon
    await connection.execute("update fenceline.session set expires_at = now() - interval '1 second'")
    assert (await anonymous.get("/v1/jobs")).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": ORIGIN},
        {"X-Fenceline-CSRF": "csrf"},
        {"Origin": FOREIGN, "X-Fenceline-CSRF": "csrf"},
        {"Origin": "null", "X-Fenceline-CSRF": "csrf"},
        {"Origin": ORIGIN, "X-Fenceline-CSRF": "wrong"},
    ],
)
async def test_a_forged_change_is_refused(
    anonymous: httpx.AsyncClient, queue_app: Fenceline, headers: dict[str, str]
) -> None:
    csrf = await sign_in(anonymous, await make_token(queue_app, "operator"))
    if headers.get("X-Fenceline-CSRF") == "csrf":
        headers = {**headers, "X-Fenceline-CSRF": csrf}
    answer = await anonymous.post("/v1/jobs", json={"kind": "a"}, headers=headers)
    assert answer.status_code == 403
    assert (await anonymous.get("/v1/jobs")).json()["items"] == []
    assert (await anonymous.post("/v1/jobs", json={"kind": "a"}, headers=changing(csrf))).status_code == 202


@pytest.mark.parametrize("headers", [{"Origin": FOREIGN}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}])
async def test_a_foreign_page_reads_nothing(
    anonymous: httpx.AsyncClient, queue_app: Fenceline, headers: dict[str, str]
) -> None:
    await sign_in(anonymous, await make_token(queue_app, "operator"))
    assert (await anonymous.get("/v1/jobs", headers=headers)).status_code == 403


async def test_a_name_that_was_made_to_point_here_gets_neither_page_nor_session(
    anonymous: httpx.AsyncClient, queue_app: Fenceline
) -> None:
    token = await make_token(queue_app, "operator")
    for host in ("evil.example", "evil.example:8321", "127.0.0.1.evil.example"):
        assert (await anonymous.get("/", headers={"Host": host})).status_code == 403
        refused = await anonymous.post("/v1/session", json={"token": token}, headers={"Host": host})
        assert refused.status_code == 403
    # A token needs no such care: a browser never sends it by itself.
    with_token = {"Host": "evil.example", "Authorization": f"Bearer {token}"}
    assert (await anonymous.get("/v1/jobs", headers=with_token)).status_code == 200


async def test_pages_of_named_origins_sign_in_and_read_but_change_nothing(queue_app: Fenceline) -> None:
    page = "https://app.example.com"
    settings = ServerSettings(
        maintain=False, token_cache_seconds=0.0, hosts=("jobs.example.com",), origins=(page,), refusals_per_second=0
    )
    token = await make_token(queue_app, "operator")
    async with running(create_app(settings, queue_app)) as api, client_of(api) as client:
        client.base_url = httpx.URL("http://jobs.example.com")
        client.headers["Origin"] = page
        answer = await client.post("/v1/session", json={"token": token})
        assert answer.headers["access-control-allow-origin"] == page
        assert answer.headers["access-control-allow-credentials"] == "true"
        assert (await client.get("/v1/jobs")).status_code == 200
        csrf = answer.json()["csrf"]
        refused = await client.post("/v1/jobs", json={"kind": "a"}, headers={"X-Fenceline-CSRF": csrf})
        assert refused.status_code == 403
        foreign = await client.get("/v1/jobs", headers={"Origin": FOREIGN})
        assert foreign.status_code == 403
        assert "access-control-allow-origin" not in foreign.headers


async def test_signing_out_closes_the_streams(queue_app: Fenceline, connect: Connect) -> None:
    settings = ServerSettings(maintain=False, token_cache_seconds=0.0)  # a stream lasts longer than a test
    token = await make_token(queue_app, "operator")
    job = await (await Work.start(await connect())).enqueue()
    async with (
        running(create_app(settings, queue_app)) as api,
        serving(api) as url,
        httpx.AsyncClient(base_url=url, timeout=seconds_left()) as client,
    ):
        csrf = await sign_in(client, token)
        async with Watcher(client, f"/v1/jobs/{job}/stream") as watcher:
            await watcher.until(lambda: watcher.statuses == ["queued"])
            answer = await client.delete("/v1/session", headers=changing(csrf, url))
            assert answer.status_code == 204, answer.text
            await watcher.until(lambda: watcher.ended)
    assert watcher.comments[-1] == "the token is not valid any more"


async def test_pages_have_a_policy_that_lets_no_foreign_script_in(anonymous: httpx.AsyncClient) -> None:
    for path in ("/", "/jobs", "/login"):
        page = await anonymous.get(path)
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "<script>" not in page.text
        assert "://" not in page.text
    assert (await anonymous.get("/assets/nothing.js")).status_code == 404
    assert (await anonymous.get("/assets/../app.py")).status_code == 404
    known = await anonymous.get("/assets/icon.svg")
    again = await anonymous.get("/assets/icon.svg", headers={"If-None-Match": known.headers["etag"]})
    assert again.status_code == 304
