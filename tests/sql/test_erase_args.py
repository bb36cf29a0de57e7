"""Erasing the args of a job: only of finished ones, audited, and never run again."""

from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Queue


async def test_args_are_replaced_and_the_rest_stays(queue: Queue) -> None:
    job = await queue.enqueue(args={"card": "4111"}, labels={"project": "x"})
    await queue.run(job, result={"ok": True})
    before = await queue.job(job)
    await queue.call("erase_args", job, "ada", "asked by the customer")
    after = await queue.job(job)
    assert after["args"] == {"$erased": {"at": after["args"]["$erased"]["at"], "by": "ada"}}
    assert after | {"args": None} == before | {"args": None}
    [event] = [event for event in await queue.events(await queue.public_id(job)) if event["action"] == "job.erase"]
    assert (event["actor"], event["reason"], event["before"], event["after"]) == (
        "ada", "asked by the customer", None, None,
    )  # fmt: skip


async def test_nothing_of_them_is_left_in_any_table(queue: Queue) -> None:
    job = await queue.enqueue(args={"card": "4111-1111"}, dedupe_key="d", idempotency_key="i")
    await queue.run(job)
    await queue.call("erase_args", job)
    tables = await queue.connection.fetch(
        "select oid::regclass::text as name from pg_class "
        "where relnamespace = 'fenceline'::regnamespace and relkind = 'r'"
    )
    for table in tables:
        assert not await queue.sql(f"select bool_or(t::text like '%4111-1111%') from {table['name']} t"), table["name"]


@pytest.mark.parametrize("held", [{}, {"needs_approval": True}])
async def test_an_unfinished_job_keeps_its_args(queue: Queue, held: dict[str, Any]) -> None:
    job = await queue.enqueue(args={"n": 1}, **held)
    with pytest.raises(asyncpg.PostgresError, match="cannot be erased") as refused:
        await queue.call("erase_args", job)
    assert refused.value.sqlstate == "FL011"
    assert (await queue.job(job))["args"] == {"n": 1}
    await queue.call("cancel_job", job)
    await queue.call("erase_args", job)
    assert "$erased" in (await queue.job(job))["args"]


async def test_an_erased_job_is_not_retried(queue: Queue) -> None:
    job = await queue.finished(args={"n": 1})
    await queue.call("erase_args", job)
    with pytest.raises(asyncpg.PostgresError, match="its args were erased") as refused:
        await queue.rows("retry_job", job)
    assert refused.value.sqlstate == "FL055"


async def test_erasing_twice_is_harmless(queue: Queue) -> None:
    job = await queue.finished(args={"n": 1})
    await queue.call("erase_args", job, "ada")
    first = await queue.job(job)
    await queue.call("erase_args", job, "bob")
    assert await queue.job(job) == first
    assert len([event for event in await queue.events() if event["action"] == "job.erase"]) == 1


async def test_a_job_of_another_tenant_is_not_there(queue: Queue) -> None:
    job = await queue.finished(args={"n": 1})
    with pytest.raises(asyncpg.PostgresError) as refused:
        await queue.call("erase_args", job, tenant="other")
    assert refused.value.sqlstate == "FL010"
