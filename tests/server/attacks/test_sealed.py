"""A server with the keys opens what it sealed itself, and is no oracle for whoever has a token from a backup."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from cryptography.fernet import Fernet
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.runner_calls import Claimed, claim_one
from tests.server.test_jobs import is_problem

from fenceline import Fenceline

SECRET = "card 4111-1111"  # noqa: S105 - that is what it is
LANES = "/v1/admin/workers/lanes"


@pytest.fixture
async def queue_app(database: str) -> AsyncIterator[Fenceline]:
    async with Fenceline(database, codec=Fernet(Fernet.generate_key())) as app:
        yield app


@pytest.fixture
async def token(as_role: AsRole, connect: Connect) -> str:
    """As it stands in a dump: of another tenant's job."""
    made = await (await as_role("producer", tenant="other")).post(
        "/v1/jobs", json={"kind": "pay", "args": {"n": SECRET}}
    )
    assert made.status_code == 202
    found: str = await (await connect()).fetchval("select args ->> '$sealed' from fenceline.job")
    assert SECRET not in found
    return found


def forms(token: str) -> list[Any]:
    return [{"$sealed": token}, f"sealed:{token}"]


async def refused(answer: httpx.Response) -> None:
    is_problem(answer, 422, "invalid")
    assert SECRET not in answer.text


async def test_what_is_enqueued(token: str, as_role: AsRole) -> None:
    producer, operator = await as_role("producer"), await as_role("operator")
    text = f"sealed:{token}"
    for options in (
        {"labels": {"a": text}},
        {"labels": {text: "a"}},
        {"labels": {"$sealed": token}},
        {"key": text},
        {"dedupe_key": text},
        {"resource_lock": text},
        {"identity": text},
        {"runner": text},
        {"snapshot": {"$sealed": token}},
        {"snapshot": [{"deep": {"$sealed": token}}]},
    ):
        await refused(await producer.post("/v1/jobs", json={"kind": "a", **options}))
    for form in forms(token):
        body = {"name": "n", "kind": "a", "args": {"x": form}}
        await refused(await operator.post("/v1/schedules", json={**body, "cron": "0 3 * * *"}))
        await refused(await operator.post("/v1/triggers", json=body))
    # Args are sealed themselves, and opened once.
    for form in forms(token):
        made = await producer.post("/v1/jobs", json={"kind": "a", "args": {"x": form}})
        assert made.json()["args"] == {"x": form}
    # Other texts may begin as they like.
    made = await producer.post("/v1/jobs", json={"kind": "a", "labels": {"state": "sealed:tight"}})
    assert made.json()["labels"] == {"state": "sealed:tight"}


@pytest.fixture
async def attempt(token: str, as_role: AsRole) -> Claimed:
    await (await as_role("producer", name="pat")).post("/v1/jobs", json={"kind": "a", "max_attempts": 1})
    return await claim_one(await as_role("runner"))


async def test_what_runners_write(token: str, attempt: Claimed, as_role: AsRole) -> None:
    text = f"sealed:{token}"
    for form in forms(token):
        await refused(await attempt.put("progress", {"more": {"x": form}}))
        item = {"job": attempt.job, "attempt_id": attempt.attempt_id, "progress": {"x": form}}
        await refused(await attempt.client.post("/v1/jobs/report", json={"attempts": [item]}))
        await refused(await attempt.finish("failed", metadata={"x": form}))
    await refused(await attempt.put("phase", {"phase": text}))
    await refused(await attempt.put("items", {"to": "skipped", "items": [text[:100]], "why": text}))
    await refused(await attempt.put(f"steps/{text}", {"result": 1}))
    await refused(await attempt.post("children", {"kind": "a", "labels": {"x": text}}))
    for labels in ({"x": text}, {"$sealed": token}):
        assert (await attempt.client.post("/v1/runners", json={"labels": labels})).status_code == 422
    error = {"code": text, "type": text, "exit_code": {"$sealed": token}, "message": text}
    assert (await attempt.finish("failed", error=error, result=text)).status_code == 200
    viewer = await as_role("viewer")
    for path in ("", "/attempts", "/events", "/phases", "/steps", "/logs", "/explain"):
        answer = await viewer.get(f"/v1/jobs/{attempt.job}{path}")
        assert answer.status_code == 200
        assert SECRET not in answer.text, path


async def test_what_operators_say(token: str, as_role: AsRole) -> None:
    fleet = await as_role("fleet_operator")
    job = (await fleet.post("/v1/jobs", json={"kind": "a"})).json()["id"]
    text = f"sealed:{token}"
    await refused(await fleet.post(f"/v1/jobs/{job}/cancel", json={"reason": text}))
    await refused(await fleet.post("/v1/admin/drain", json={"reason": text}))
