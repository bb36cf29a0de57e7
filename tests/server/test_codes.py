"""The error codes of the design for every route, generated from the OpenAPI document; none has a side effect."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.operations import MISSING_ID, Operation, operations

from fenceline.server.limits import RateLimit
from fenceline.server.routing import SIGNED_IN
from fenceline.server.server_settings import ServerSettings

MAX_BYTES = 10_000
OPERATIONS = [operation for operation in operations() if not operation.is_public]
WITH_BODY = [operation for operation in OPERATIONS if operation.example is not None]
#: A path's parameter that is a name to be created is none that could be missing.
CREATES = {"POST /v1/admin/workers/lanes/{name}", "POST /v1/roles/{name}"}
WITH_PATH = [operation for operation in OPERATIONS if "{" in operation.path and str(operation) not in CREATES]


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(maintain=False, max_body_bytes=MAX_BYTES, stream_seconds=0.1, refusals_per_second=0)


@pytest.fixture
async def admin(as_role: AsRole) -> httpx.AsyncClient:
    client = await as_role("platform_admin")
    await client.get("/v1/roles")  # the token's first use leaves its time
    return client


@pytest.fixture
async def unchanged(connect: Connect, admin: httpx.AsyncClient) -> AsyncIterator[None]:
    """The database has after the test what it had before."""
    connection = await connect()
    before = await contents(connection)
    yield
    assert await contents(connection) == before


async def contents(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, str]:
    tables = await connection.fetch(
        "select relname from pg_class where relnamespace = 'fenceline'::regnamespace and relkind = 'r'"
    )
    return {
        table["relname"]: await connection.fetchval(
            f"select count(*) || md5(coalesce(string_agg(t::text, '|' order by t::text), '')) "
            f'from fenceline."{table["relname"]}" t'
        )
        for table in tables
    }


def refused(response: httpx.Response, operation: Operation, status: int, code: str) -> None:
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), (
        f"{operation}: {response.text[:300]}"
    )
    assert response.json()["code"] == code, operation
    assert status in operation.statuses, f"{operation} does not document {status}"


@pytest.mark.usefixtures("unchanged")
async def test_401_without_a_valid_token(anonymous: httpx.AsyncClient) -> None:
    for operation in OPERATIONS:
        for header in ({}, {"Authorization": "Bearer fl_nonsense"}, {"Authorization": "Basic YTpi"}):
            response = await anonymous.request(
                operation.method, operation.url(), json=operation.example, headers=header
            )
            refused(response, operation, 401, "unauthenticated")
            assert response.headers["www-authenticate"] == "Bearer"


async def test_403_without_the_permission(as_role: AsRole, admin: httpx.AsyncClient, connect: Connect) -> None:
    await admin.post("/v1/roles/idle", json={"permissions": []})
    idle = await as_role("idle")
    await idle.get("/v1/jobs")
    connection = await connect()
    before = await contents(connection)
    for operation in OPERATIONS:
        if operation.permission == SIGNED_IN:
            continue
        refused(
            await idle.request(operation.method, operation.url(), json=operation.example), operation, 403, "forbidden"
        )
    assert await contents(connection) == before


@pytest.mark.usefixtures("unchanged")
async def test_404_for_missing_and_malformed_names(admin: httpx.AsyncClient) -> None:
    for operation in WITH_PATH:
        for value in (MISSING_ID, "nonsense", "0", "%F0%9F%92%A9", "a%00b", "a" * 300):
            response = await admin.request(
                operation.method, operation.url(id=value, name=value), json=operation.example
            )
            refused(response, operation, 404, "not_found")


@pytest.mark.usefixtures("unchanged")
async def test_413_for_too_much(admin: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 1000

    headers = {"Content-Type": "application/json"}
    for operation in WITH_BODY:
        announced = await admin.request(operation.method, operation.url(), content=b" " * 10_001, headers=headers)
        refused(announced, operation, 413, "too_large")
        in_pieces = await admin.request(operation.method, operation.url(), content=chunks(), headers=headers)
        refused(in_pieces, operation, 413, "too_large")


@pytest.mark.usefixtures("unchanged")
async def test_415_for_another_media_type(admin: httpx.AsyncClient) -> None:
    for operation in WITH_BODY:
        for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
            headers = {"Content-Type": media_type} if media_type else {}
            response = await admin.request(operation.method, operation.url(), content=b"{}", headers=headers)
            refused(response, operation, 415, "unsupported_media_type")


BAD_BODIES: dict[str, bytes] = {
    "unknown field": b'{"nonsense": 1}',
    "no object": b"[]",
    "no JSON": b"{",
    "NaN": b'{"args": {"a": NaN}, "reason": NaN}',
    "half a surrogate": b'{"kind": "a", "reason": "\\ud800"}',
    "not UTF-8": b'{"kind": "\xff", "reason": "\xff"}',
    "deep": b'{"args":' + b"[" * 3000 + b"]" * 3000 + b"}",
}


@pytest.mark.parametrize("what", BAD_BODIES)
@pytest.mark.usefixtures("unchanged")
async def test_422_for_a_bad_body(admin: httpx.AsyncClient, what: str) -> None:
    headers = {"Content-Type": "application/json"}
    for operation in WITH_BODY:
        response = await admin.request(operation.method, operation.url(), content=BAD_BODIES[what], headers=headers)
        refused(response, operation, 422, "invalid")


@pytest.mark.usefixtures("unchanged")
async def test_422_for_a_bad_query(admin: httpx.AsyncClient) -> None:
    for operation in OPERATIONS:
        names = {p["name"] for p in operation.document.get("parameters", ()) if p["in"] == "query"}
        for name in names & {"limit", "cursor", "created_after", "created_before"}:
            for value in ("nonsense", "-1", ""):
                response = await admin.request(operation.method, operation.url(), params={name: value})
                refused(response, operation, 422, "invalid")
                assert response.json()["errors"][0]["field"] == name, operation


async def test_405_and_unknown_paths_are_problems_too(admin: httpx.AsyncClient) -> None:
    response = await admin.put("/v1/jobs", json={})
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    response = await admin.get("/v1/nonsense")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_429_when_a_token_asks_too_much(as_role: AsRole, api: Any) -> None:
    producer, other = await as_role("producer"), await as_role("producer")
    api.state.server.rate_limit = RateLimit(0.001)
    answers = [await producer.get("/v1/jobs") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[-1].json()["code"] == "limited"
    assert int(answers[-1].headers["retry-after"]) > 0
    assert (await other.get("/v1/jobs")).status_code == 200


async def test_429_when_a_tenant_asks_too_much(as_role: AsRole, api: Any) -> None:
    acme, also_acme = await as_role("producer", tenant="acme"), await as_role("viewer", tenant="acme")
    other = await as_role("producer", tenant="other")
    api.state.server.rate_limit = RateLimit(5000, per_tenant=0.001)
    assert (await acme.get("/v1/jobs")).status_code == 200
    refused = await also_acme.get("/v1/jobs")
    assert (refused.status_code, refused.json()["code"]) == (429, "limited")
    assert (await other.get("/v1/jobs")).status_code == 200
