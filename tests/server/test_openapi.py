"""The document is complete, and the matrix of routes and roles is what the design says: generated, default deny."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from tests.server.conftest import AsRole, client_of
from tests.server.operations import Operation, document, operations, resolve

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.dashboard import pages
from fenceline.server.routing import SIGNED_IN, GuardedRoute, operation, router
from fenceline.server.server_settings import ServerSettings

#: The design's own table (section 7); the seeds are compared with it, and the routes with the seeds.
ROLES = {
    "viewer": {"jobs:read", "workers:view"},
    "producer": {"jobs:read", "jobs:enqueue", "jobs:cancel"},
    "operator": {
        "jobs:read", "jobs:read_all", "jobs:enqueue", "jobs:cancel", "jobs:approve", "jobs:manage", "workers:view",
        "schedules:manage", "audit:read",
    },
    "fleet_operator": {
        "jobs:read", "jobs:read_all", "jobs:enqueue", "jobs:cancel", "jobs:approve", "jobs:manage", "workers:view",
        "workers:manage", "schedules:manage", "audit:read",
    },
    "runner": {"runners:claim"},
    "platform_admin": {"*"},
}  # fmt: skip
#: Without a token, but signed.
SIGNED = {"/v1/triggers/{name}"}
PUBLIC = {"/v1/callbacks/{secret}", "/healthz", "/readyz", "/metrics", "/openapi.json", *SIGNED}
OPERATIONS = operations()


def test_only_these_paths_are_public() -> None:
    assert {operation.path for operation in OPERATIONS if operation.is_public} == {*PUBLIC, "/v1/session"}
    assert [
        operation.method for operation in OPERATIONS if operation.is_public and operation.path == "/v1/session"
    ] == ["POST"]


def test_a_route_without_a_permission_is_a_mistake_that_shows_at_once() -> None:
    async def endpoint() -> None: ...

    with pytest.raises(TypeError, match="/v1/open names no permission"):
        router("careless").get("/v1/open")(endpoint)


def test_every_route_is_guarded() -> None:
    api = create_app(ServerSettings(), Fenceline("postgresql://nowhere"))
    assert [route for route in each_route(api) if not isinstance(route, GuardedRoute)] == []
    assert len(each_route(api)) == len(OPERATIONS)


def each_route(api: FastAPI) -> list[Any]:
    found = list(api.router.routes)
    for route in list(found):
        if hasattr(route, "original_router"):  # what include_router keeps
            found.remove(route)
            found += route.original_router.routes
    shown = {id(route) for route in pages.routes.routes}  # files of the dashboard, for everybody
    return [route for route in found if id(route) not in shown]


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_operation_is_described(operation: Operation) -> None:
    described = operation.document
    assert described["summary"]
    assert described["description"]
    assert described["tags"]
    whole = document()
    successes = [status for status in operation.statuses if status < 300]
    assert successes
    for status, answer in described["responses"].items():
        assert answer["description"], status
        for media_type, content in answer.get("content", {}).items():
            schema = resolve(whole, content["schema"])
            if int(status) >= 400:
                assert media_type == "application/problem+json", status
                assert content["examples"], status
            elif "properties" in schema:
                assert schema["additionalProperties"] is False, status
    if not operation.is_public:
        assert {401, 403, 429, 503} <= operation.statuses
    if operation.example is not None:
        assert {413, 415, 422} <= operation.statuses
    if "{" in operation.path:
        assert 404 in operation.statuses or operation.method == "POST"


async def test_the_document_is_served_as_it_is(anonymous: Any) -> None:
    response = await anonymous.get("/openapi.json")
    assert response.status_code == 200
    assert response.json() == json.loads(json.dumps(document()))
    assert response.json()["openapi"].startswith("3.1")


async def test_seeded_roles_are_those_of_the_design(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    found = {role["name"]: set(role["permissions"]) for role in (await admin.get("/v1/roles")).json()["items"]}
    assert found == ROLES


async def test_route_by_role_by_tenant(api: FastAPI, as_role: AsRole) -> None:
    """Whatever the tenant: 401 without a token, 403 without the permission, anything else with it."""
    wrong: list[str] = []
    clients = {
        (role, tenant): await as_role(role, tenant=tenant) for role in ROLES for tenant in ("default", "acme", "other")
    }
    async with client_of(api) as nobody, client_of(api, "fl_" + "x" * 43) as stranger:
        for operation in OPERATIONS:
            for (role, tenant), client in {("nobody", ""): nobody, ("stranger", ""): stranger, **clients}.items():
                allowed = operation.is_public or bool(ROLES.get(role, set()) & {"*", operation.permission})
                allowed = allowed or (operation.permission == SIGNED_IN and role in ROLES)
                who = f"{role} of {tenant}"
                response = await client.request(operation.method, operation.url(), json=operation.example)
                if allowed:
                    as_expected = response.status_code not in (401, 403, 500)
                else:
                    as_expected = response.status_code == (403 if role in ROLES else 401)
                # Enough for a bulk verb: each action asks for the permission of its own.
                if operation.path == "/v1/jobs/bulk" and role == "viewer":
                    as_expected = response.status_code == 403
                if operation.is_public and operation.path in {*SIGNED, "/v1/session"}:
                    as_expected = response.status_code == 401
                if not as_expected:
                    wrong.append(f"{operation} as {who}: {response.status_code} {response.text[:200]}")
    assert wrong == []


async def test_permissions_are_looked_at_before_anything_else(api: FastAPI, as_role: AsRole) -> None:
    """A request that is wrong in every way is answered by who asks, not by what is wrong."""
    runner = await as_role("runner")
    async with client_of(api) as nobody:
        for operation in OPERATIONS:
            if operation.is_public or operation.permission in {"runners:claim", SIGNED_IN}:
                continue
            answers = [
                await client.request(
                    operation.method,
                    operation.url(id="%3F", name="%3F"),
                    content=b"{" * 5_000_000,
                    headers={"Content-Type": "text/plain"},
                )
                for client in (nobody, runner)
            ]
            assert [answer.status_code for answer in answers] == [401, 403], operation


def test_operation_gives_every_guarded_route_its_refusals() -> None:
    assert {401, 403, 429, 503} <= operation("jobs:read")["responses"].keys()
