"""A dead receiver harms only who chose it; a secret is changed without a gap; private networks stay shut."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from ipaddress import ip_network

import httpcore
import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.receiver import Receiver, receiving
from tests.server.test_incoming_webhooks import signed
from tests.server.test_outgoing_webhooks import LOOPBACK, deliver
from tests.server.watching import Work
from tests.support.figures import Figures
from tests.support.patience import eventually

from fenceline import Fenceline
from fenceline.model.signature import sign
from fenceline.server.lane_wakeups import ReadyLanes
from fenceline.server.safe_post import Refused, SafePost
from fenceline.server.server_settings import ServerSettings, read_networks
from fenceline.server.webhook_delivery import WebhookDeliveries

OLD, NEW = "the old secret of the test", "the new secret of the test"
DEAD_DELIVERIES = 100


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(
        maintain=False, deliver=False, token_cache_seconds=0.0, hooks_allow_http=True, hooks_allow_private=LOOPBACK
    )


@pytest.fixture
async def deliverer(api: FastAPI) -> AsyncIterator[WebhookDeliveries]:
    deliverer = WebhookDeliveries(
        api.state.server.database, SafePost(allow_http=True, allowed=LOOPBACK, timeout_seconds=3600), ReadyLanes()
    )
    yield deliverer
    await deliverer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def add_hook(as_role: AsRole, tenant: str, url: str) -> int:
    admin = await as_role("platform_admin", tenant=tenant, name=f"admin of {tenant}")
    response = await admin.post("/v1/hooks", json={"url": url, "secret": OLD})
    assert response.status_code == 201, response.text
    return int(response.json()["id"])


async def deliver_past_a_dead_receiver(
    as_role: AsRole, connect: Connect, receiver: Receiver, deliverer: WebhookDeliveries
) -> float:
    """It takes connections and never answers: each delivery there holds its place for the whole time-out, which is
    longer than a test. After how many seconds another tenant's delivery arrives.
    """
    work = await Work.start(await connect())
    with socket.create_server(("127.0.0.1", 0), backlog=2000) as dead:
        await add_hook(as_role, "acme", f"http://127.0.0.1:{dead.getsockname()[1]}/")
        await add_hook(as_role, "other", receiver.url)
        for _ in range(DEAD_DELIVERIES):
            await work.run(tenant="acme")

        async def are_held() -> bool:
            return deliverer.engine is not None and deliverer.engine.running >= 4

        running = asyncio.create_task(deliverer.run())
        try:
            await eventually(are_held, "deliveries to the dead receiver")
            started = time.monotonic()
            await work.run(tenant="other")
            await receiver.until(lambda: bool(receiver.requests))
            return time.monotonic() - started
        finally:
            running.cancel()
            await asyncio.wait({running})


async def test_a_dead_receiver_of_one_tenant_does_not_delay_another(
    as_role: AsRole, connect: Connect, receiver: Receiver, deliverer: WebhookDeliveries
) -> None:
    await deliver_past_a_dead_receiver(as_role, connect, receiver, deliverer)


@pytest.mark.timing
async def test_a_delivery_past_a_dead_receiver_arrives_soon(
    as_role: AsRole, connect: Connect, receiver: Receiver, deliverer: WebhookDeliveries, figures: Figures
) -> None:
    taken = await deliver_past_a_dead_receiver(as_role, connect, receiver, deliverer)
    figures.at_most("a delivery past a dead receiver (44 s before tenants took turns)", taken, 5)


async def test_deliveries_are_signed_with_both_secrets_while_both_are_valid(
    as_role: AsRole, connect: Connect, receiver: Receiver, deliverer: WebhookDeliveries
) -> None:
    work = await Work.start(await connect())
    hook = await add_hook(as_role, "acme", receiver.url)
    admin = await as_role("platform_admin", tenant="acme", name="again")
    rotated = await admin.post(f"/v1/hooks/{hook}/rotate", json={"secret": NEW, "overlap_seconds": 3600})
    assert rotated.status_code == 200, rotated.text
    assert rotated.json()["secret"] == NEW
    await work.run(tenant="acme")
    await deliver(deliverer)
    at_once = await admin.post(f"/v1/hooks/{hook}/rotate", json={"overlap_seconds": 0})
    await work.run(tenant="acme")
    await deliver(deliverer)
    both, one = receiver.requests
    assert which_fit(both.headers, both.body, OLD, NEW) == [NEW, OLD]
    assert which_fit(one.headers, one.body, OLD, NEW, at_once.json()["secret"]) == [at_once.json()["secret"]]
    [listed] = (await admin.get("/v1/hooks")).json()["items"]
    assert not {"secret", "previous_secret"} & listed.keys()
    foreign = await as_role("platform_admin", tenant="other")
    assert (await foreign.post("/v1/hooks/999/rotate", json={})).status_code == 404


def which_fit(headers: dict[str, str], body: bytes, *secrets: str) -> list[str]:
    """The secrets that signed it, in the order of the signatures."""
    timestamp = int(headers["fenceline-timestamp"])
    signatures = headers["fenceline-signature"].split(",")
    return [secret for one in signatures for secret in secrets if sign(secret, timestamp, body) == one]


async def test_a_trigger_takes_both_secrets_until_the_overlap_is_over(
    as_role: AsRole, anonymous: httpx.AsyncClient, queue_app: Fenceline, connect: Connect
) -> None:
    operator = await as_role("operator", tenant="acme")
    made = await operator.post("/v1/triggers", json={"name": "push", "kind": "build", "secret": OLD})
    assert made.status_code == 201, made.text
    rotated = await operator.post("/v1/triggers/push/rotate", json={"secret": NEW, "overlap_seconds": 3600})
    assert rotated.status_code == 200, rotated.text
    assert rotated.json()["previous_until"] is not None

    async def fire(secret: str, body: bytes) -> int:
        return (await anonymous.post("/v1/triggers/push", content=body, headers=signed(body, secret))).status_code

    assert await fire(OLD, b'{"n": 1}') == await fire(NEW, b'{"n": 2}') == 202
    connection = await connect()
    await connection.execute("update fenceline.trigger set previous_until = fenceline.clock()")
    assert (await fire(OLD, b'{"n": 3}'), await fire(NEW, b'{"n": 4}')) == (401, 202)
    [listed] = (await operator.get("/v1/triggers")).json()["items"]
    assert not {"secret", "previous_secret"} & listed.keys()
    events = (await operator.get("/v1/admin/audit")).json()["items"]
    assert "trigger.rotate" in {event["action"] for event in events}
    assert OLD not in str(events)
    assert NEW not in str(events)


async def no_packet(*_args: object, **_options: object) -> None:
    pytest.fail("a packet would have gone out")


async def test_a_wide_network_opens_neither_this_machine_nor_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", no_packet)
    post = SafePost(allow_http=True, allowed=read_networks("0.0.0.0/0, ::/0"))
    for host in ("127.0.0.1", "[::1]", "169.254.169.254", "[fe80::1]"):
        with pytest.raises(Refused, match="not a public address"):
            await post.post(f"http://{host}/", b"", {})
    await post.close()


async def test_only_the_networks_that_were_named_are_open(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", no_packet)
    allowed = read_networks("10.0.0.0/8, fd00::/8")
    assert allowed == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
    post = SafePost(allow_http=True, allowed=allowed)
    for host in ("127.0.0.1", "[::1]", "169.254.169.254", "[fe80::1]", "192.168.0.1"):
        with pytest.raises(Refused, match="not a public address"):
            await post.post(f"http://{host}:{receiver.port}/", b"", {})
    assert receiver.requests == []
    await post.close()
    for wrong in ("10.0.0.1/8", "yes", "10.0.0.0/33"):
        with pytest.raises(ValueError, match="not a network"):
            read_networks(wrong)
