"""examples/integrations/fastapi_shop.py, by Starlette's test client."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.integrations.examples import Shop, load_example
from tests.support.patience import seconds_left

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.model.secret import new_token


@pytest.fixture
def client(database: str, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    shop.poll_never()
    example = load_example("fastapi_shop", database, monkeypatch)
    with TestClient(example.web) as client:
        yield client


def result_of(client: TestClient, shop: Shop, job: str) -> Any:
    shop.until(lambda: client.get(f"/jobs/{job}").json()["status"] == "succeeded")
    return client.get(f"/jobs/{job}").json()["result"]


def test_a_rollback_leaves_no_job(client: TestClient, shop: Shop) -> None:
    assert client.post("/orders", params={"item": "nothing"}).status_code == 422
    assert shop.counts == (0, 0)


def test_a_commit_wakes_the_worker(client: TestClient, shop: Shop) -> None:
    shop.until_a_worker_waits()
    answer = client.post("/orders", params={"item": "tea"})
    assert answer.status_code == 202
    assert result_of(client, shop, answer.json()["job"]) == "receipt for tea"
    assert shop.counts == (1, 1)


def test_killed_connections_heal(client: TestClient, shop: Shop) -> None:
    first = client.post("/orders", params={"item": "tea"}).json()["job"]
    assert result_of(client, shop, first) == "receipt for tea"
    assert shop.kill_connections() > 0
    second = client.post("/orders", params={"item": "coffee"}).json()["job"]
    assert result_of(client, shop, second) == "receipt for coffee"


@pytest.mark.parametrize("job", ["nonsense", "0000-0000-0000-000"])
def test_a_job_that_is_not_there_is_404(client: TestClient, job: str) -> None:
    for path in (f"/jobs/{job}", f"/jobs/{job}/stream"):
        assert client.get(path).status_code == 404


def test_progress_is_streamed(client: TestClient) -> None:
    job = client.post("/orders", params={"item": "tea"}).json()["job"]
    with client.stream("GET", f"/jobs/{job}/stream", timeout=seconds_left()) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: ")]
    assert events[-1]["status"] == "succeeded"
    assert "found" in [event["line"] for event in events]
    assert any(event["progress"] for event in events)


def test_the_server_is_mounted(client: TestClient, database: str) -> None:
    token, token_hash = new_token()

    async def create() -> None:
        async with Fenceline(database) as app:
            await app_parts(app).database().call(calls.tokens.bootstrap_token(token_hash))

    asyncio.run(create())
    assert client.get("/queue/v1/jobs").status_code == 401
    headers = {"Authorization": f"Bearer {token}"}
    made = client.post("/queue/v1/jobs", json={"kind": "other"}, headers=headers)
    assert made.status_code == 202
    assert made.headers["Location"] == f"/queue/v1/jobs/{made.json()['id']}"
    assert client.get(made.headers["Location"], headers=headers).status_code == 200
    assert client.get("/queue/v1/jobs", headers=headers).json()["items"][0]["id"] == made.json()["id"]
    assert client.get("/queue/healthz").status_code == 200
    assert 'src="/queue/assets/main.js"' in client.get("/queue/").text
