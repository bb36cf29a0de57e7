"""The newest version of a resource wins. Races are in lock_scenarios.py."""

from decimal import Decimal

import asyncpg
import pytest
from tests.conftest import Connect
from tests.sql.queue import Attempt, Queue


async def guard(queue: Queue, attempt: Attempt, resource: str | None, version: str | None) -> bool:
    value = None if version is None else Decimal(version)
    passed = await queue.call("guard_newer", attempt.job_id, attempt.attempt_id, resource, value)
    assert isinstance(passed, bool)
    return passed


async def test_versions_are_numbers_of_any_size(queue: Queue) -> None:
    await queue.enqueue()
    attempt = await queue.claim_one()
    assert await guard(queue, attempt, "page", "12345678901234567890.000000000000001")
    assert not await guard(queue, attempt, "page", "12345678901234567890")
    assert await guard(queue, attempt, "page", "12345678901234567890.000000000000002")
    assert await guard(queue, attempt, "another", "-5")


async def test_tenants_have_resources_of_their_own(queue: Queue) -> None:
    await queue.enqueue(tenant="acme")
    await queue.enqueue(tenant="globex")
    first, second = await queue.claim(2)
    assert await guard(queue, first, "page", "2")
    assert await guard(queue, second, "page", "1")


@pytest.mark.parametrize(
    "resource, version",
    [("", "1"), (None, "1"), ("x" * 501, "1"), ("page", None), ("page", "NaN"), ("page", "Infinity")],
)
async def test_what_cannot_be_compared_is_refused(queue: Queue, resource: str | None, version: str | None) -> None:
    await queue.enqueue()
    attempt = await queue.claim_one()
    before = await queue.contents()
    with pytest.raises(asyncpg.PostgresError) as refused:
        await guard(queue, attempt, resource, version)
    assert refused.value.sqlstate == "FL007"
    assert await queue.contents() == before


async def test_a_version_that_is_written_counts_with_its_transaction(queue: Queue, connect: Connect) -> None:
    await queue.enqueue()
    await queue.enqueue()
    newer, older = await queue.claim(2)
    user = await connect()
    await queue.connection.execute("set lock_timeout = '2s'")
    transaction = user.transaction()
    await transaction.start()
    text = "select fenceline.guard_write($1, $2, 'page', 2)"
    assert await user.fetchval(text, newer.job_id, newer.attempt_id)
    # The attempt itself is not locked: its lease and its cancel do not wait for user code.
    assert await queue.call("set_progress", newer.job_id, newer.attempt_id, "write") is True
    await transaction.rollback()
    assert await guard(queue, older, "page", "1")
    assert await user.fetchval(text, newer.job_id, newer.attempt_id)
    assert not await guard(queue, older, "page", "1")
    await queue.finish(newer)
    with pytest.raises(asyncpg.PostgresError) as refused:
        await user.fetchval(text, newer.job_id, newer.attempt_id)
    assert refused.value.sqlstate == "FL012"
