"""Signals over HTTP: from those with a token, and from strangers with a one-time URL."""

import hashlib
import logging

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, client_of, running
from tests.server.test_jobs import is_problem

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

SECRET = "s" * 43


async def open_callback(connect: Connect, seconds: float = 60) -> None:
    connection = await connect()
    await connection.execute("select * from fenceline.enqueue('a', '{}')")
    await connection.execute("select fenceline.register_worker('w', 600)")
    hashed = hashlib.sha256(SECRET.encode()).digest()
    await connection.execute(
        "select fenceline.create_callback(c.job_id, c.attempt_id, 'go', $1, $2) "
        "from fenceline.claim_jobs((select max(id) from fenceline.worker), 'default', 1) c",
        hashed,
        seconds,
    )


async def signals(connect: Connect) -> list[tuple[str, str | None]]:
    rows = await (await connect()).fetch("select name, payload::text from fenceline.signal order by id")
    return [(row["name"], row["payload"]) for row in rows]


async def test_a_signal_is_sent_once_per_idempotency_key(as_role: AsRole, connect: Connect) -> None:
    producer, operator = await as_role("producer"), await as_role("operator", name="ann")
    job = (await producer.post("/v1/jobs", json={"kind": "a"})).json()
    path = f"/v1/jobs/{job['id']}/signals/go"
    for _ in range(2):
        sent = await producer.post(path, json={"payload": {"n": 1}}, headers={"Idempotency-Key": "k"})
        assert (sent.status_code, sent.json()["status"]) == (202, "queued")
    assert (await operator.post(path)).status_code == 202
    assert await signals(connect) == [("go", '{"n": 1}'), ("go", None)]
    assert is_problem(await producer.post(path, json={"wrong": 1}), 422, "invalid")
    assert is_problem(await producer.post(f"/v1/jobs/{job['id']}/signals/No%20Name"), 422, "invalid")
    await operator.post(f"/v1/jobs/{job['id']}/cancel")
    assert is_problem(await producer.post(path), 409, "wrong_status")


async def test_a_foreign_job_is_a_missing_one(as_role: AsRole, connect: Connect) -> None:
    mine, foreign = await as_role("producer", tenant="acme"), await as_role("producer", tenant="other")
    job = (await mine.post("/v1/jobs", json={"kind": "a"})).json()
    path = f"/v1/jobs/{job['id']}/signals/go"
    assert is_problem(await foreign.post(path), 404, "not_found")
    assert is_problem(await (await as_role("viewer", tenant="acme")).post(path), 403, "forbidden")
    assert await signals(connect) == []


@pytest.mark.parametrize(
    "sent, kept",
    [
        ({"json": {"n": 1}}, '{"n": 1}'),
        ({"data": {"n": "1"}}, '{"n": "1"}'),
        ({}, None),
    ],
    ids=["json", "form", "nothing"],
)
async def test_a_callback_works_once(
    anonymous: httpx.AsyncClient, connect: Connect, sent: dict[str, object], kept: str | None
) -> None:
    await open_callback(connect)
    used = await anonymous.post(f"/v1/callbacks/{SECRET}", **sent)  # type: ignore[arg-type]  # one of several forms
    assert (used.status_code, used.content) == (202, b"")
    assert await signals(connect) == [("go", kept)]
    again = await anonymous.post(f"/v1/callbacks/{SECRET}", json={})
    unknown = await anonymous.post("/v1/callbacks/another", json={})
    assert is_problem(again, 404, "not_found")
    assert again.json() == unknown.json(), "which of the two it is, is not told"


async def test_a_body_that_cannot_be_kept_does_not_use_it_up(anonymous: httpx.AsyncClient, connect: Connect) -> None:
    await open_callback(connect)
    headers = {"Content-Type": "application/json"}
    assert is_problem(await anonymous.post(f"/v1/callbacks/{SECRET}", content=b"{", headers=headers), 422, "invalid")
    large = await anonymous.post(f"/v1/callbacks/{SECRET}", json="x" * 3_000_000)
    assert is_problem(large, 413, "too_large")
    assert (await anonymous.post(f"/v1/callbacks/{SECRET}", json=1)).status_code == 202


async def test_guesses_are_limited_and_secrets_not_logged(
    queue_app: Fenceline, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    await open_callback(connect)
    settings = ServerSettings(maintain=False, refusals_per_second=0.001, access_log=True)
    api: FastAPI
    with caplog.at_level(logging.INFO):
        async with running(create_app(settings, queue_app)) as api, client_of(api) as guesser:
            answers = [(await guesser.post(f"/v1/callbacks/guess{n}", json={})).status_code for n in range(4)]
            limited = await guesser.post(f"/v1/callbacks/{SECRET}", json={})
    assert answers[0] == 404
    assert answers[-1] == limited.status_code == 429
    assert await signals(connect) == []
    assert "/v1/callbacks/…" in caplog.text
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("fenceline")]
    assert not any("guess" in line or SECRET in line for line in ours)
