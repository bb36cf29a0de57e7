"""Locks, resource locks and keys: who has them, and who waits."""

from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from tests.sql.queue import Attempt, Json, Queue


async def locks(queue: Queue, *job: int | None, **who: Any) -> list[Json]:
    return [row[0] for row in await queue.rows("describe_locks", *job, **who)]


async def take(queue: Queue, attempt: Attempt) -> None:
    await queue.rows("take_lock", attempt.job_id, attempt.attempt_id, "db", "orders", uuid4(), [])


async def test_what_a_job_holds_and_waits_for_with_the_holder(queue: Queue) -> None:
    holder = await queue.enqueue(resource_lock="table", priority=9)
    waiter = await queue.enqueue(priority=8)
    attempts = await queue.claim(2)
    for attempt in attempts:
        await take(queue, attempt)
    first = await queue.public_id(holder)
    told = [(lock["what"], lock["name"], lock["held"], lock["holder"]) for lock in await locks(queue, holder)]
    assert told == [("resource_lock", "table", True, None), ("lock", "orders", True, None)]
    (wait,) = await locks(queue, waiter)
    assert (wait["what"], wait["namespace"], wait["held"], wait["holder"]) == ("lock", "db", False, first)


async def test_keys(queue: Queue) -> None:
    holder = await queue.enqueue(key="acct:7")
    await queue.maintain()
    waiter = await queue.enqueue(key="acct:7")
    (held,) = await locks(queue, holder)
    assert (held["what"], held["name"], held["held"]) == ("key", "acct:7", True)
    (wait,) = await locks(queue, waiter)
    assert (wait["held"], wait["holder"]) == (False, await queue.public_id(holder))
    assert [lock["held"] for lock in await locks(queue)] == [True, False]


async def test_each_tenant_and_each_producer_sees_their_own(queue: Queue) -> None:
    job = (await queue.rows("enqueue", "work", {}, {"resource_lock": "r", "tenant": "acme"}, "ann"))[0]["job_id"]
    assert len(await locks(queue, None, tenant="acme")) == 1
    assert await locks(queue, None, tenant="rival") == []
    assert len(await locks(queue, None, created_by="ann")) == 1
    assert await locks(queue, None, created_by="bob") == []
    for who in ({"tenant": "rival"}, {"created_by": "bob"}):
        with pytest.raises(asyncpg.PostgresError) as refused:
            await locks(queue, job, **who)
        assert refused.value.sqlstate == "FL010"


async def test_the_holder_is_not_named_to_who_may_not_see_it(queue: Queue) -> None:
    await queue.rows("enqueue", "work", {}, {"key": "k"}, "ann")
    await queue.maintain()
    mine = (await queue.rows("enqueue", "work", {}, {"key": "k"}, "bob"))[0]["job_id"]
    (wait,) = await locks(queue, mine, created_by="bob")
    assert (wait["held"], wait["holder"]) == (False, None)
