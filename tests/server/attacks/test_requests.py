"""Requests at the edge: what is unknown is refused, who is refused too often is not asked about, answers say little."""

import asyncio
import logging
import re
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from tests.server.conftest import AsRole, client_of, running
from tests.server.operations import operations
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.errors import DatabaseUnavailable
from fenceline.model.secret import new_token
from fenceline.runtime.database import Database
from fenceline.server import health, incoming_webhooks, limits, metrics, openapi
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import EdgeSettings, ServerSettings


def problem(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_unknown_query_parameters(as_role: AsRole) -> None:
    """On every route, also where there is nothing to find; nothing is done."""
    admin = await as_role("platform_admin")
    for operation in operations():
        answer = await admin.request(
            operation.method, operation.url(), params={"staus": "failed"}, json=operation.example
        )
        assert problem(answer) == (422, "invalid"), operation
        assert answer.json()["errors"][0]["field"] == "staus"
    good = await admin.get("/v1/jobs", params={"status": "failed", "limit": "5"})
    assert good.status_code == 200


async def test_unknown_body_fields(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    for operation in operations():
        if operation.method == "GET" or operation.is_public:
            continue
        body: dict[str, Any] = {**(operation.example or {}), "nonsense": 1}
        answer = await admin.request(operation.method, operation.url(), json=body)
        assert problem(answer) == (422, "invalid"), operation


async def test_headers_of_every_answer(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    viewer = await as_role("viewer")
    for answer in (
        await viewer.get("/v1/jobs"),
        await viewer.get("/v1/nothing"),
        await anonymous.get("/v1/jobs"),
        await anonymous.get("/healthz"),
        await anonymous.get("/openapi.json"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"


BRACKETS = ("[", "[x]", "]", "[::1", "\xe9")


@pytest.mark.parametrize("settings", [ServerSettings(maintain=False), ServerSettings(maintain=False, no_auth=True)])
async def test_hosts_and_origins_that_are_none(anonymous: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    """Anybody may send them: they are refused like foreign ones, and leave no traceback in the log."""
    cookie = {b"Cookie": f"fenceline={new_token()[0]}".encode()}
    for text in BRACKETS:
        host, origin = {b"Host": text.encode("latin-1")}, {b"Origin": f"http://{text}".encode("latin-1")}
        for headers in ({**cookie, **host}, {**cookie, **origin}):
            for method in ("GET", "POST"):
                answer = await anonymous.request(method, "/v1/jobs", headers=headers)
                assert answer.status_code in (401, 403), (headers, answer.text)
        assert (await anonymous.get("/", headers=host)).status_code == 403
    assert "Traceback" not in caplog.text


async def test_a_callbacks_secret_is_in_no_log(queue_app: Fenceline, caplog: pytest.LogCaptureFixture) -> None:
    """Also where an application has mounted the server under a path."""
    caplog.set_level(logging.INFO, "fenceline")
    api = create_app(ServerSettings(maintain=False, deliver=False, access_log=True), queue_app)
    site = Starlette(routes=[Mount("/queue", app=api), Mount("/", app=api)])
    secret = new_token()[0]
    headers = {"Content-Type": "application/json"}
    async with running(api), httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://x") as client:
        for root in ("", "/queue"):
            answer = await client.post(f"{root}/v1/callbacks/{secret}", content=b"1" * 300_000, headers=headers)
            assert answer.status_code == 413
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("fenceline.")]
    assert len([line for line in lines if "/v1/callbacks/" in line]) == 4
    assert secret not in str(lines)


async def test_readyz_hides_what_the_driver_says(
    anonymous: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(_self: Database, _call: object, _connection: object = None) -> None:
        raise DatabaseUnavailable("cannot connect to db-7.internal:5432 as fenceline_server")

    monkeypatch.setattr(Database, "call", away)
    answer = await anonymous.get("/readyz")
    assert problem(answer) == (503, "unavailable")
    assert "db-7" not in answer.text
    assert "db-7.internal" in caplog.text
    assert health.log.name == "fenceline.server"


async def test_a_trigger_deleted_in_flight(
    as_role: AsRole, anonymous: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = await as_role("operator")
    secret = "a secret of the tests' own"  # noqa: S105 - that is what it is
    made = await operator.post("/v1/triggers", json={"name": "push", "kind": "build", "secret": secret})
    assert made.status_code == 201
    receive = incoming_webhooks._receive

    async def delete_behind(request: Any, name: str) -> Any:
        found = await receive(request, name)
        assert (await operator.delete("/v1/triggers/push")).status_code == 204
        return found

    monkeypatch.setattr(incoming_webhooks, "_receive", delete_behind)
    from tests.server.test_incoming_webhooks import BODY, signed  # noqa: PLC0415 - its fixtures are its own

    answer = await anonymous.post("/v1/triggers/push", content=BODY, headers=signed(BODY, secret))
    assert problem(answer) == (404, "not_found")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is sent to the database, by function."""
    sent: Counter[str] = Counter()
    call = Database.call

    async def counted(self: Database, wanted: Any, connection: Any = None) -> Any:
        sent.update(re.findall(r"fenceline\.(\w+)\(", wanted.sql)[:1])
        return await call(self, wanted, connection)

    monkeypatch.setattr(Database, "call", counted)
    return sent


class Clock:
    """The clock of a module, which stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock_of_limits(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Buckets fill again only when a test says so, however long its requests take."""
    clock = Clock()
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


class TestRefusals:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(
            maintain=False, deliver=False, refusals_per_second=0.5, edge=EdgeSettings(trusted_proxies=("10.0.0.0/8",))
        )

    async def test_401_are_limited_before_any_statement(
        self, clock_of_limits: Clock, api: FastAPI, as_role: AsRole, statements: Counter[str]
    ) -> None:
        viewer = await as_role("viewer")
        assert (await viewer.get("/v1/jobs")).status_code == 200
        statements.clear()

        async def guess(times: int) -> list[httpx.Response]:
            answers = []
            for _ in range(times):
                async with client_of(api, new_token()[0]) as guessing:
                    answers.append(await guessing.get("/v1/jobs"))
            return answers

        answers = await guess(20)
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 15  # a burst of 5
        assert problem(answers[-1]) == (429, "limited")
        assert int(answers[-1].headers["retry-after"]) == 2
        clock_of_limits.now += 4.5  # and what comes with time
        assert [answer.status_code for answer in await guess(4)] == [401] * 2 + [429] * 2
        assert statements["use_token"] <= 7
        # Who was let in before goes on; triggers, which have no token, do not.
        assert (await viewer.get("/v1/jobs")).status_code == 200
        async with client_of(api) as stranger:
            assert problem(await stranger.post("/v1/triggers/x", json={})) == (429, "limited")
            assert (await stranger.get("/healthz")).status_code == 200
        assert not statements.keys() & {"trigger_keys", "find_triggers"}

    @pytest.mark.usefixtures("clock_of_limits")
    async def test_403_are_limited(self, as_role: AsRole) -> None:
        viewer = await as_role("viewer")
        assert (await viewer.get("/v1/jobs")).status_code == 200
        answers = [await viewer.post("/v1/admin/drain") for _ in range(12)]
        assert [answer.status_code for answer in answers] == [403] * 5 + [429] * 7
        assert problem(answers[-1]) == (429, "limited")

    @pytest.mark.usefixtures("clock_of_limits")
    async def test_a_log_of_refused_requests(
        self, api: FastAPI, as_role: AsRole, caplog: pytest.LogCaptureFixture
    ) -> None:
        secret = new_token()[0]
        viewer = await as_role("viewer", tenant="acme", name="eve")
        async with client_of(api, secret) as guessing:
            await guessing.get("/v1/jobs?label=a:hidden")
        await viewer.post("/v1/admin/drain")
        lines = [record.getMessage() for record in caplog.records if record.name == "fenceline.refused"]
        assert lines[0].startswith("refused 401 unauthenticated 'GET /v1/jobs' from 127.0.0.1: the token is unknown")
        assert lines[1].startswith(
            "refused 403 forbidden 'POST /v1/admin/drain' from 127.0.0.1 by 'eve' (role viewer, tenant acme): role"
        )
        assert secret not in caplog.text
        assert "hidden" not in caplog.text
        for _ in range(60):  # a flood is no flood of lines
            async with client_of(api, new_token()[0]) as guessing:
                await guessing.get("/v1/jobs")
        lines = [record.getMessage() for record in caplog.records if record.name == "fenceline.refused"]
        assert len(lines) == 20


async def test_what_needs_no_token_costs_little(
    anonymous: httpx.AsyncClient, statements: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many ask, they use one connection, and nothing long is made anew for each."""
    made: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        make = getattr(module, name)

        def counting(*args: Any) -> Any:
            made[name] += 1
            return make(*args)

        monkeypatch.setattr(module, name, counting)

    counted(metrics, "generate_latest")
    counted(openapi, "openapi")
    # What is measured is remembered for a moment, which lasts as long as this test.
    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=Clock().monotonic))
    monkeypatch.setattr(health, "READY_SECONDS", seconds_left())
    for path in ("/readyz", "/metrics", "/openapi.json"):
        answers = await asyncio.gather(*(anonymous.get(path) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}
    assert statements["schema_version"] <= 5
    assert statements["describe_lanes"] == 1
    assert made["generate_latest"] == 1
    assert made["openapi"] == 1


class TestRates:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(maintain=False, deliver=False, requests_per_second=4, tenant_requests_per_second=4)

    async def test_a_token_and_a_tenant_have_a_rate_each(self, clock_of_limits: Clock, as_role: AsRole) -> None:
        async def ask(client: httpx.AsyncClient) -> tuple[int, list[httpx.Response]]:
            """How many of ten requests are answered; and those that are not."""
            answers = [await client.get("/v1/jobs") for _ in range(10)]
            refused = [answer for answer in answers if answer.status_code != 200]
            assert {problem(answer) for answer in refused} == {(429, "limited")}
            return len(answers) - len(refused), refused

        ann, bob = await as_role("viewer", name="ann"), await as_role("viewer", name="bob")
        other = await as_role("viewer", tenant="other")
        done, refused = await ask(ann)
        assert done == 4
        assert "with this token" in refused[-1].json()["detail"]
        assert int(refused[-1].headers["retry-after"]) >= 1
        done, refused = await ask(bob)
        assert done == 0
        assert "of this tenant" in refused[0].json()["detail"]
        assert (await other.get("/v1/jobs")).status_code == 200
        clock_of_limits.now += 0.8  # three fit into it, of either of them
        assert [(await ask(client))[0] for client in (ann, bob)] == [3, 0]


async def test_access_log_on_request(queue_app: Fenceline, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fenceline.access")
    for wanted in (False, True):
        settings = ServerSettings(maintain=False, deliver=False, access_log=wanted)
        async with running(create_app(settings, queue_app)) as api, client_of(api) as client:
            await client.get("/healthz")
        lines = [record.getMessage() for record in caplog.records if record.name == "fenceline.access"]
        assert len(lines) == wanted
    assert lines[0].startswith("127.0.0.1 'GET /healthz' 200 ")
