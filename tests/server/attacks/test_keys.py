"""Keys of others: they tell nothing about the job behind them. And one key stands for one request."""

import json

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_incoming_webhooks import BODY, create, signed
from tests.server.test_jobs import is_problem
from tests.server.worker import Hand

CARD = "4111-1111"
KEYS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"Idempotency-Key": "k"}, {}),
    ({}, {"dedupe_key": "k"}),
    ({"Idempotency-Key": "k"}, {"dedupe_key": "k"}),
]
PAY = {"kind": "pay", "args": {"card": CARD}}


@pytest.mark.parametrize("headers, extra", KEYS)
async def test_a_key_of_somebody_else_shows_nothing(
    as_role: AsRole, connect: Connect, hand: Hand, headers: dict[str, str], extra: dict[str, str]
) -> None:
    ann, bob = await as_role("producer", name="ann"), await as_role("producer", name="bob")
    made = await ann.post("/v1/jobs", json={**PAY, **extra}, headers=headers)
    assert made.status_code == 202
    if not extra:
        await hand.run(result={"receipt": CARD})
    connection = await connect()
    before = await connection.fetchval("select count(*) from fenceline.job")
    # The same request, and a different one: what he says does not tell whether he guessed right.
    for body in ({**PAY, **extra}, {"kind": "pay", **extra}, {"kind": "other", "priority": 5, **extra}):
        refused = await bob.post("/v1/jobs", json=body, headers=headers)
        is_problem(refused, 409, "key_taken")
        assert CARD not in refused.text
        assert made.json()["id"] not in refused.text
        assert "location" not in refused.headers
    assert await connection.fetchval("select count(*) from fenceline.job") == before
    assert (await ann.post("/v1/jobs", json={**PAY, **extra}, headers=headers)).json()["id"] == made.json()["id"]
    # An operator sees all jobs of the tenant, also by their keys.
    operator = await as_role("operator")
    assert (await operator.post("/v1/jobs", json={**PAY, **extra}, headers=headers)).json()["id"] == made.json()["id"]


async def test_a_webhook_is_not_told_of_jobs_of_others(as_role: AsRole, anonymous: httpx.AsyncClient) -> None:
    await create(await as_role("operator"), dedupe_header="X-Subject")
    producer = await as_role("producer")
    made = await producer.post("/v1/jobs", json={**PAY, "dedupe_key": "k"})
    assert made.status_code == 202
    refused = await anonymous.post("/v1/triggers/push", content=BODY, headers={**signed(), "X-Subject": "k"})
    is_problem(refused, 409, "key_taken")
    assert CARD not in refused.text


async def test_one_idempotency_key_stands_for_one_request(as_role: AsRole, connect: Connect) -> None:
    producer = await as_role("producer")
    headers = {"Idempotency-Key": "k"}
    body = {"kind": "pay", "args": {"amount": 10, "to": "ann"}, "priority": 3}
    first = await producer.post("/v1/jobs", json=body, headers=headers)
    assert first.status_code == 202
    for other in (
        {**body, "args": {"amount": 1000, "to": "ann"}},
        {**body, "kind": "pay_twice"},
        {**body, "priority": 4},
        {**body, "labels": {"a": "b"}},
        {"kind": "pay"},
    ):
        is_problem(await producer.post("/v1/jobs", json=other, headers=headers), 422, "idempotency_mismatch")
    assert await (await connect()).fetchval("select count(*) from fenceline.job") == 1
    # The same in another order of its members is the same.
    again = {"priority": 3, "args": {"to": "ann", "amount": 10}, "kind": "pay"}
    repeated = await producer.post("/v1/jobs", content=json.dumps(again), headers={**headers, **JSON})
    assert (repeated.status_code, repeated.json()["id"]) == (200, first.json()["id"])


async def test_keys_of_before_and_sealed_args_fit(connect: Connect) -> None:
    """Rows of an older version say nothing about the request; encrypted args look different each time."""
    connection = await connect()
    enqueue = "select job_id from fenceline.enqueue('pay', $1, $2)"
    options = '{"idempotency_key": "k"}'
    first = await connection.fetchval(enqueue, '{"a": 1}', options)
    await connection.execute("update fenceline.idempotency set request = null")
    assert await connection.fetchval(enqueue, '{"a": 2}', options) == first
    options = '{"idempotency_key": "s"}'
    first = await connection.fetchval(enqueue, '{"$sealed": "gAAAA1"}', options)
    assert await connection.fetchval(enqueue, '{"$sealed": "gAAAA2"}', options) == first


JSON = {"Content-Type": "application/json"}
