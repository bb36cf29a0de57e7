"""Incoming webhooks: only who has the secret, only now, only once."""

import asyncio
import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, make_token
from tests.server.watching import serving
from tests.support.tools import needed_tool

from fenceline import Fenceline
from fenceline.model.signature import sign
from fenceline.model.webhook_schemes import Claim

SECRET = "a secret of the tests' own"  # noqa: S105 - that is what it is
OTHER = "the secret of the other tenant"
DOCS = Path(__file__).parent.parent.parent / "docs"
BODY = b'{"repository": {"name": "fence"}, "commits": [{"id": "4f1c"}], "size": 3}'


def signed(
    body: bytes = BODY, secret: str = SECRET, at: float | None = None, more: dict[str, str] | None = None
) -> dict[str, str]:
    timestamp = int(time.time() if at is None else at)
    return {
        "Content-Type": "application/json",
        "Fenceline-Timestamp": str(timestamp),
        "Fenceline-Signature": sign(secret, timestamp, body),
        **(more or {}),
    }


async def create(client: httpx.AsyncClient, **settings: Any) -> dict[str, Any]:
    response = await client.post("/v1/triggers", json={"name": "push", "kind": "build", "secret": SECRET, **settings})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


async def test_a_signed_request_enqueues_the_mapped_job(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    operator = await as_role("operator", tenant="acme", name="ann")
    paths = {"repo": "$.repository.name", "commit": "$.commits[*].id", "absent": "$.nothing.here", "size": "$.size"}
    await create(operator, args={"stage": "test", "size": 0}, map=paths, options={"priority": 7})
    response = await anonymous.post("/v1/triggers/push", content=BODY, headers=signed())
    assert response.status_code == 202, response.text
    job = response.json()
    assert job["args"] == {"stage": "test", "repo": "fence", "commit": "4f1c", "size": 3}
    assert (job["kind"], job["priority"], job["tenant"], job["created_by"]) == ("build", 7, "acme", "trigger:push")
    assert (await operator.get(response.headers["location"])).json() == job


async def test_without_a_map_the_body_is_the_args(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    await create(await as_role("operator"), args={"size": 1, "extra": True})
    response = await anonymous.post("/v1/triggers/push", content=b'{"size": 2}', headers=signed(b'{"size": 2}'))
    assert response.json()["args"] == {"size": 2, "extra": True}
    refused = await anonymous.post("/v1/triggers/push", content=b"[1]", headers=signed(b"[1]"))
    assert code(refused) == (422, "invalid")


async def test_forged_late_and_unknown_requests_are_refused_alike(
    as_role: AsRole, anonymous: httpx.AsyncClient, connect: Connect
) -> None:
    await create(await as_role("operator"), window_seconds=60)
    now = time.time()
    good = signed()
    for headers in (
        signed(secret=SECRET[::-1]),
        signed(b'{"other": "body"}'),
        {**good, "Fenceline-Timestamp": str(int(now) + 1)},  # the signature is for another time
        {**good, "Fenceline-Signature": good["Fenceline-Signature"][:-1] + "g"},
        {**good, "Fenceline-Signature": good["Fenceline-Signature"].removeprefix("v1=")},
        {key: value for key, value in good.items() if key != "Fenceline-Signature"},
        {key: value for key, value in good.items() if key != "Fenceline-Timestamp"},
        signed(at=now - 70),
        signed(at=now + 70),
    ):
        assert code(await anonymous.post("/v1/triggers/push", content=BODY, headers=headers)) == (
            401,
            "unauthenticated",
        )
    assert code(await anonymous.post("/v1/triggers/none", content=BODY, headers=good)) == (401, "unauthenticated")
    assert await (await connect()).fetchval("select count(*) from fenceline.job") == 0
    for at in (now - 50, now + 50):
        assert (await anonymous.post("/v1/triggers/push", content=BODY, headers=signed(at=at))).status_code == 202


async def test_a_request_is_accepted_once(as_role: AsRole, anonymous: httpx.AsyncClient, connect: Connect) -> None:
    await create(await as_role("operator"))
    headers = signed()
    answers = await asyncio.gather(
        *(anonymous.post("/v1/triggers/push", content=BODY, headers=headers) for _ in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 7]
    refused = next(answer for answer in answers if answer.status_code == 409).json()
    assert (refused["code"], refused["reason"]) == ("conflict", "replayed")
    connection = await connect()
    assert await connection.fetchval("select count(*) from fenceline.job") == 1
    # Longer than any timestamp is accepted.
    kept = await connection.fetchval(
        "select extract(epoch from max(until) - clock_timestamp()) from fenceline.trigger_seen"
    )
    assert 300 < kept <= 600


async def test_headers_make_repeats_the_same_job(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    await create(await as_role("operator"), idempotency_header="X-Delivery-Id", dedupe_header="X-Subject")
    first = await anonymous.post("/v1/triggers/push", content=BODY, headers=signed(more={"X-Delivery-Id": "1"}))
    again = await anonymous.post(
        "/v1/triggers/push", content=BODY, headers=signed(at=time.time() - 5, more={"X-Delivery-Id": "1"})
    )
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["id"] == first.json()["id"]
    other = [
        await anonymous.post(
            "/v1/triggers/push", content=BODY, headers=signed(at=time.time() - n, more={"X-Subject": "s"})
        )
        for n in (6, 7)
    ]
    assert [answer.status_code for answer in other] == [202, 200]


async def test_a_refused_request_is_not_used_up(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    operator = await as_role("fleet_operator")
    await create(operator)
    headers = signed()
    await operator.post("/v1/admin/drain")
    assert code(await anonymous.post("/v1/triggers/push", content=BODY, headers=headers)) == (503, "draining")
    await operator.post("/v1/admin/resume")
    assert (await anonymous.post("/v1/triggers/push", content=BODY, headers=headers)).status_code == 202


async def test_a_name_belongs_to_its_tenant(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    acme, other = await as_role("operator", tenant="acme"), await as_role("operator", tenant="other")
    await create(acme)
    await create(other, secret=OTHER)
    for secret, tenant in ((SECRET, "acme"), (OTHER, "other")):
        fired = await anonymous.post("/v1/triggers/push", content=BODY, headers=signed(secret=secret))
        assert fired.json()["tenant"] == tenant
    assert [item["tenant"] for item in (await acme.get("/v1/triggers")).json()["items"]] == ["acme"]
    assert code(await acme.get("/v1/triggers/push?tenant=other")) == (404, "not_found")
    assert code(await acme.delete("/v1/triggers/push?tenant=other")) == (404, "not_found")
    admin = await as_role("platform_admin")
    assert len((await admin.get("/v1/triggers")).json()["items"]) == 2
    assert (await admin.delete("/v1/triggers/push?tenant=other")).status_code == 204
    assert (await acme.get("/v1/triggers/push")).status_code == 200


async def test_the_secret_is_shown_once_and_making_and_deleting_is_in_the_audit(as_role: AsRole) -> None:
    operator = await as_role("operator", name="ann")
    made = (await operator.post("/v1/triggers", json={"name": "push", "kind": "build"})).json()
    assert made["secret"].startswith("whsec_")
    assert len(made["secret"]) > 40
    assert code(await operator.post("/v1/triggers", json={"name": "push", "kind": "build"})) == (409, "conflict")
    assert (await operator.delete("/v1/triggers/push")).status_code == 204
    for path in ("/v1/triggers", "/v1/admin/audit"):
        text = (await operator.get(path)).text
        assert made["secret"] not in text
    events = (await operator.get("/v1/admin/audit")).json()["items"]
    assert [(e["action"], e["actor"], e["subject"]) for e in events[:2]] == [
        ("trigger.delete", "ann", "push"), ("trigger.create", "ann", "push"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Not A Name"}, {"kind": "Not A Kind"}, {"map": {"a": "$["}}, {"map": {"a": "nonsense"}},
        {"window_seconds": 0}, {"secret": "short"}, {"idempotency_header": "a b"}, {"options": {"lane": "Not a lane"}},
        {"options": {"nonsense": 1}}, {"args": []},
    ],
)  # fmt: skip
async def test_settings_are_checked(as_role: AsRole, wrong: dict[str, Any]) -> None:
    operator = await as_role("operator")
    response = await operator.post("/v1/triggers", json={"name": "push", "kind": "build", **wrong})
    assert code(response) == (422, "invalid"), response.text
    assert (await operator.get("/v1/triggers")).json()["items"] == []


def test_signatures_are_compared_whole() -> None:
    signature = bytes.fromhex(sign(SECRET, 1, b"x").removeprefix("v1="))

    def fits(said: bytes) -> bool:
        claim = Claim((said,), b"1.", 1)
        signing = claim.start(SECRET.encode())
        signing.update(b"x")
        return claim.fits(signing)

    assert fits(signature)
    for n in range(32):
        assert not fits(signature[:n] + bytes([signature[n] ^ 1]) + signature[n + 1 :])


async def test_the_session_in_the_docs_runs_as_printed(api: FastAPI, queue_app: Fenceline, connect: Connect) -> None:
    for name in ("curl", "openssl"):
        needed_tool(name)
    [session] = re.findall(r"```sh\n(.*?)```", (DOCS / "guides" / "webhooks.md").read_text(), re.DOTALL)
    async with serving(api) as url:
        process = await asyncio.create_subprocess_exec(
            "bash", "-euc", session,
            env={**os.environ, "URL": url, "TOKEN": await make_token(queue_app, "operator")},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            output, _ = await process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # harmless if it has ended
            await process.wait()
    assert process.returncode == 0, output.decode()
    job = await (await connect()).fetchrow("select kind, args, created_by from fenceline.job")
    assert job is not None
    assert (job["kind"], job["created_by"]) == ("deploy", "trigger:deploy")
    assert json.loads(job["args"]) == {"stage": "test", "commit": "4f1c"}
