"""Outgoing webhooks: one delivery per end, signed, retried, and never into a network that is not meant."""

import json
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole, client_of, make_token, running
from tests.server.receiver import Receiver, receiving
from tests.server.watching import Work

from fenceline.model.signature import sign
from fenceline.server.asgi_app import create_app
from fenceline.server.lane_wakeups import ReadyLanes
from fenceline.server.safe_post import Refused, SafePost, is_public
from fenceline.server.server_settings import ServerSettings
from fenceline.server.webhook_delivery import WebhookDeliveries

SECRET = "a secret of the tests' own"  # noqa: S105 - that is what it is
LOOPBACK = (ip_network("127.0.0.0/8"),)
HOOK_JOBS = "select count(*) from fenceline.jobs where kind = 'fenceline.webhook'"


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(
        maintain=False, deliver=False, token_cache_seconds=0.0, hooks_allow_http=True, hooks_allow_private=LOOPBACK
    )


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def work(connect: Connect) -> Work:
    return await Work.start(await connect())


@pytest.fixture
async def deliverer(api: FastAPI) -> AsyncIterator[WebhookDeliveries]:
    """As the server runs it, one round at a time."""
    deliverer = WebhookDeliveries(
        api.state.server.database, SafePost(allow_http=True, allowed=LOOPBACK, timeout_seconds=60), ReadyLanes()
    )
    yield deliverer
    await deliverer.close()


async def deliver(deliverer: WebhookDeliveries) -> None:
    """One round, and what it started to its end."""
    await deliverer.run_once()


async def create(client: httpx.AsyncClient, url: str, **settings: Any) -> int:
    response = await client.post("/v1/hooks", json={"url": url, "secret": SECRET, **settings})
    assert response.status_code == 201, response.text
    return int(response.json()["id"])


async def test_an_end_is_posted_once_signed_with_the_job_as_body(
    as_role: AsRole, work: Work, receiver: Receiver, deliverer: WebhookDeliveries
) -> None:
    admin = await as_role("platform_admin")
    await create(admin, receiver.url)
    job = await work.run()
    await deliver(deliverer)
    await deliver(deliverer)
    [request] = receiver.requests
    assert request.line == "POST /in HTTP/1.1"
    assert json.loads(request.body) == (await admin.get(f"/v1/jobs/{job}")).json()
    timestamp = int(request.headers["fenceline-timestamp"])
    assert request.headers["fenceline-signature"] == sign(SECRET, timestamp, request.body)
    delivery = (await admin.get("/v1/jobs?kind=fenceline.webhook&fields=result")).json()["items"]
    assert [(item["status"], item["lane"], item["result"]) for item in delivery] == [
        ("succeeded", "webhooks", {"status": 200})
    ]


async def test_a_receiver_that_fails_is_tried_again_and_the_end_of_a_delivery_is_not_reported(
    as_role: AsRole, work: Work, receiver: Receiver, deliverer: WebhookDeliveries
) -> None:
    admin = await as_role("platform_admin")
    await create(admin, receiver.url)
    await work.run()
    receiver.answers = [500, 302]
    for status in ("scheduled", "scheduled", "succeeded"):
        await deliver(deliverer)
        [delivery] = (await admin.get("/v1/jobs?kind=fenceline.webhook")).json()["items"]
        assert delivery["status"] == status
        await work.connection.execute("update fenceline.timer set run_at = clock_timestamp() - interval '1 second'")
        await work.connection.execute("select fenceline.promote_timers()")
    assert len(receiver.requests) == 3
    assert len({request.body for request in receiver.requests}) == 1
    [first, second, _last] = (await admin.get(f"/v1/jobs/{delivery['id']}/attempts")).json()["items"]
    assert first["error"]["message"].startswith("the receiver answered 500")
    assert second["error"]["message"].startswith("the receiver answered 302")  # a redirect is not followed


async def test_filters_choose_kinds_and_ends_and_other_kinds_pay_nothing(as_role: AsRole, work: Work) -> None:
    admin = await as_role("platform_admin")
    assert await work.connection.fetchval("select count(*) from fenceline.lane where name = 'webhooks'") == 0
    await create(admin, "https://example.com/", kinds=["a"], statuses=["failed"])
    for kind, outcome, tenant, made in (
        ("a", "succeeded", "default", 0), ("b", "failed_for_good", "default", 0),
        ("a", "failed_for_good", "acme", 0), ("a", "failed_for_good", "default", 1),
    ):  # fmt: skip
        await work.run(kind, outcome, tenant=tenant)
        assert await work.connection.fetchval(HOOK_JOBS) == made, (kind, outcome)
    await create(admin, "https://example.com/", kinds=["a"])
    await work.run("a", "failed_for_good")
    assert await work.connection.fetchval(HOOK_JOBS) == 3  # one per hook
    cancelled = await work.enqueue("a")
    await work.connection.fetch("select fenceline.cancel_job(fenceline.parse_public_id($1))", cancelled)
    assert await work.connection.fetchval(HOOK_JOBS) == 4  # whoever ends it


async def test_an_end_that_is_rolled_back_is_not_reported(as_role: AsRole, work: Work) -> None:
    await create(await as_role("platform_admin"), "https://example.com/")
    await work.enqueue()
    [job] = await work.claim()
    attempt = work.attempts[job]
    transaction = work.connection.transaction()
    await transaction.start()
    await work.finish(job)
    assert await work.connection.fetchval(HOOK_JOBS) == 1
    await transaction.rollback()
    assert await work.connection.fetchval(HOOK_JOBS) == 0
    work.attempts[job] = attempt
    await work.finish(job)
    assert await work.connection.fetchval(HOOK_JOBS) == 1


async def test_a_job_ends_even_when_the_lane_was_deleted(as_role: AsRole, work: Work) -> None:
    admin = await as_role("platform_admin")
    await create(admin, "https://example.com/")
    await work.run()
    await work.connection.execute("delete from fenceline.lane where name = 'webhooks'")
    await work.run()
    assert await work.connection.fetchval(HOOK_JOBS) == 2


async def test_the_server_delivers_by_itself(queue_app: Any, work: Work, receiver: Receiver) -> None:
    settings = ServerSettings(hooks_allow_http=True, hooks_allow_private=LOOPBACK)
    token = await make_token(queue_app, "platform_admin")
    async with running(create_app(settings, queue_app)) as api, client_of(api, token) as admin:
        await create(admin, receiver.url)
        await work.run()
        await receiver.until(lambda: len(receiver.requests) == 1)
    assert await work.connection.fetchval("select count(*) from fenceline.running") == 0


async def test_deliveries_that_cannot_succeed_end(
    as_role: AsRole, work: Work, receiver: Receiver, deliverer: WebhookDeliveries
) -> None:
    admin = await as_role("platform_admin")
    hook = await create(admin, receiver.url)
    await work.run()
    assert (await admin.delete(f"/v1/hooks/{hook}")).status_code == 204
    receiver.answers = [410]
    await create(admin, receiver.url)
    gone = await work.run()
    job = await work.run()
    await admin.delete(f"/v1/jobs/{job}")
    await deliver(deliverer)
    found = (await admin.get("/v1/jobs?kind=fenceline.webhook&status=failed")).json()["items"]
    assert sorted(item["error"]["code"] for item in found) == ["gone", "not_found", "unknown_hook"]
    assert gone in receiver.requests[0].body.decode()


async def test_secrets_and_tenants(as_role: AsRole) -> None:
    admin = await as_role("platform_admin")
    await admin.post("/v1/roles/hooks", json={"permissions": ["hooks:manage", "audit:read"]})
    acme, other = await as_role("hooks", tenant="acme"), await as_role("hooks", tenant="other")
    made = (await acme.post("/v1/hooks", json={"url": "https://example.com/"})).json()
    assert made["secret"].startswith("whsec_")
    assert made["tenant"] == "acme"
    for path in ("/v1/hooks", "/v1/admin/audit"):
        assert made["secret"] not in (await acme.get(path)).text
    assert (await other.get("/v1/hooks")).json()["items"] == []
    assert (await other.delete(f"/v1/hooks/{made['id']}")).status_code == 404
    assert (await acme.delete(f"/v1/hooks/{made['id']}")).status_code == 204
    events = (await acme.get("/v1/admin/audit")).json()["items"]
    assert [event["action"] for event in events[:2]] == ["hook.delete", "hook.create"]


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "https://", "https://a:b@c.example/", "nonsense", "https://a b/", "https://x:0/"]
)
async def test_addresses_are_checked(as_role: AsRole, url: str) -> None:
    response = await (await as_role("platform_admin")).post("/v1/hooks", json={"url": url})
    assert (response.status_code, response.json()["code"]) == (422, "invalid"), response.text


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.1", "100.64.0.1", "224.0.0.1",
     "::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1", "::"],
)  # fmt: skip
def test_private_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


def test_public_addresses_are() -> None:
    assert is_public("93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")


async def test_the_post_goes_to_public_addresses_and_https_only(receiver: Receiver) -> None:
    careful = SafePost(allow_http=True)
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f000001"):
        with pytest.raises(Refused, match="not a public address"):
            await careful.post(f"http://{host}:{receiver.port}/", b"", {})
    with pytest.raises(Refused, match="http is not allowed"):
        await SafePost(allow_http=False, allowed=LOOPBACK).post(receiver.url, b"", {})
    assert receiver.requests == []
    bold = SafePost(allow_http=True, allowed=LOOPBACK)
    assert (await bold.post(receiver.url, b"", {}))[0] == 200
    await bold.close()
