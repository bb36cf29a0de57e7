"""A server with the keys decrypts for those who may read, and encrypts what comes in; one without passes tokens on."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from cryptography.fernet import Fernet
from fastapi import FastAPI
from tests.client.test_codec import CANARY, dump
from tests.server.conftest import AsRole, client_of, make_token, running
from tests.server.runner_calls import claim_one
from tests.server.test_incoming_webhooks import signed
from tests.server.watching import Watcher, serving
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.model.sealed import MARK
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings


@pytest.fixture
async def queue_app(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database, codec=Fernet(Fernet.generate_key())) as app:
        yield app


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(maintain=False, token_cache_seconds=0.0)


async def test_clients_and_runners_see_values_and_the_database_does_not(
    as_role: AsRole, api: FastAPI, queue_app: Fenceline, database: str
) -> None:
    producer, runner = await as_role("producer"), await as_role("runner")
    made = (await producer.post("/v1/jobs", json={"kind": "build", "args": {"x": CANARY}})).json()
    assert made["args"] == {"x": CANARY}
    token = await make_token(queue_app, "viewer")
    async with (
        serving(api) as url,
        httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=seconds_left()) as viewer,
        Watcher(viewer, f"/v1/jobs/{made['id']}/stream") as watcher,
    ):
        attempt = await claim_one(runner)
        line = {"message": f"has {CANARY}", "fields": {"of": CANARY}}
        assert (await attempt.post("logs", {"lines": [line]})).status_code == 204
        assert (await attempt.put("checkpoint", {"state": {"kept": CANARY}})).status_code < 300
        assert (await attempt.put("steps/load", {"result": CANARY})).status_code < 300
        assert (await attempt.finish("succeeded_with_errors", result=CANARY, errors=[CANARY])).status_code == 200
        await watcher.until(lambda: bool(watcher.of("log")))
        assert (watcher.messages, watcher.of("log")[0]["fields"]) == ([f"has {CANARY}"], {"of": CANARY})
    job = (await producer.get(f"/v1/jobs/{made['id']}")).json()
    assert (job["args"], job["result"], job["errors"]) == ({"x": CANARY}, CANARY, [CANARY])
    lines = (await producer.get(f"/v1/jobs/{made['id']}/logs")).json()["items"]
    assert (lines[0]["message"], lines[0]["fields"]) == (f"has {CANARY}", {"of": CANARY})
    failed = (await producer.post("/v1/jobs", json={"kind": "build", "max_attempts": 1})).json()
    error = {"message": f"not {CANARY}", "type": "Wrong"}
    assert (await (await claim_one(runner)).finish("failed", error=error)).status_code == 200
    job = (await producer.get(f"/v1/jobs/{failed['id']}")).json()
    assert (job["error"]["message"], job["error"]["type"]) == (f"not {CANARY}", "Wrong")
    assert CANARY not in dump(database)


async def test_secrets_of_webhooks_are_sealed_and_work(
    as_role: AsRole, anonymous: httpx.AsyncClient, database: str
) -> None:
    admin, secret = await as_role("platform_admin", tenant="acme"), f"{CANARY}-of-sixteen-or-more"
    trigger = {"name": "push", "kind": "build", "secret": secret}
    assert (await admin.post("/v1/triggers", json=trigger)).status_code == 201
    hook = {"url": "https://example.com/hook", "secret": secret}
    assert (await admin.post("/v1/hooks", json=hook)).status_code == 201
    body = json.dumps({"x": CANARY}).encode()
    fired = await anonymous.post("/v1/triggers/push", content=body, headers=signed(body, secret))
    assert fired.status_code == 202, fired.text
    assert fired.json()["args"] == {"x": CANARY}
    assert CANARY not in dump(database)


async def test_a_server_without_the_keys_shows_that_it_cannot_read(queue_app: Fenceline, database: str) -> None:
    job = await queue_app.enqueue("build", {"x": CANARY})
    async with (
        Fenceline(database) as blind,
        running(create_app(ServerSettings(maintain=False), blind)) as api,
        client_of(api, await make_token(queue_app, "viewer")) as viewer,
    ):
        answer = await viewer.get(f"/v1/jobs/{job.id}")
    assert answer.status_code == 200
    assert answer.json()["args"].keys() == {MARK}
