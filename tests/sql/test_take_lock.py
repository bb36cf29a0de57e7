"""Locks of running jobs: who may have one, and what is shown of it. Races are in lock_scenarios.py."""

from uuid import UUID, uuid4

import asyncpg
import pytest
from tests.sql.queue import Attempt, Queue


async def take(
    queue: Queue, attempt: Attempt, namespace: str | None, name: str | None, owner: UUID | None = None
) -> bool:
    taken = await queue.call("take_lock", attempt.job_id, attempt.attempt_id, namespace, name, owner or uuid4())
    assert isinstance(taken, bool)
    return taken


async def test_what_a_job_waits_for_is_shown(queue: Queue) -> None:
    jobs = [await queue.enqueue() for _ in range(3)]
    first, second, third = await queue.claim(3)
    owner = uuid4()
    assert await take(queue, first, "edition", "42", owner)
    await queue.move_clock(5)
    assert not await take(queue, second, "edition", "42")
    assert not await take(queue, third, "edition", "42")
    assert [await queue.status(job) for job in jobs] == [
        "claimed",
        "claimed:lock edition/42",
        "claimed:lock edition/42",
    ]
    shown = await queue.rows("list_locks", "default")
    assert [(row["namespace"], row["name"], row["job"], row["held"]) for row in shown] == [
        ("edition", "42", await queue.public_id(jobs[0]), True),
        ("edition", "42", await queue.public_id(jobs[1]), False),
        ("edition", "42", await queue.public_id(jobs[2]), False),
    ]
    assert (shown[1]["since"] - shown[0]["since"]).total_seconds() == 5
    assert await queue.rows("list_locks", "another") == []
    # A dead attempt holds nothing and waits for nothing.
    await queue.finish(first, "released")
    await queue.finish(second, "released")
    assert [row["job"] for row in await queue.rows("list_locks")] == [await queue.public_id(jobs[2])]
    assert await queue.status(jobs[1]) == "queued"


async def test_tenants_have_locks_of_their_own(queue: Queue) -> None:
    await queue.enqueue(tenant="acme")
    await queue.enqueue(tenant="globex")
    first, second = await queue.claim(2)
    assert await take(queue, first, "edition", "42")
    assert await take(queue, second, "edition", "42")


@pytest.mark.parametrize(
    "namespace, name, code",
    [
        ("", "42", "FL002"),
        ("Edition", "42", "FL002"),
        ("a/b", "42", "FL002"),
        ("x" * 65, "42", "FL002"),
        (None, "42", "FL002"),
        ("edition", "", "FL007"),
        ("edition", None, "FL007"),
        ("edition", "x" * 201, "FL007"),
    ],
)
async def test_a_name_that_breaks_the_rules_is_refused(
    queue: Queue, namespace: str | None, name: str | None, code: str
) -> None:
    await queue.enqueue()
    attempt = await queue.claim_one()
    before = await queue.contents()
    with pytest.raises(asyncpg.PostgresError) as refused:
        await take(queue, attempt, namespace, name)
    assert refused.value.sqlstate == code
    assert await queue.contents() == before


async def test_rows_of_dead_attempts_are_swept_up(queue: Queue) -> None:
    await queue.enqueue()
    await queue.enqueue()
    first, second = await queue.claim(2)
    assert await take(queue, first, "edition", "1")
    assert not await take(queue, second, "edition", "1")
    await queue.finish(first)
    await queue.finish(second)
    await queue.move_clock(120)
    await queue.call("upkeep", 0.0)
    assert await queue.sql("select count(*) from fenceline.attempt_lock") == 0
    assert await queue.sql("select count(*) from fenceline.lock_wait") == 0


async def test_a_wait_counts_as_a_sign_of_life(queue: Queue) -> None:
    await queue.set_lane("slow", stale_timeout_seconds=60)
    await queue.enqueue(lane="slow")
    await queue.enqueue(lane="slow")
    first, second = await queue.claim(2, "slow")
    assert await take(queue, first, "edition", "1")
    owner = uuid4()
    for _ in range(3):
        await queue.move_clock(50)
        assert not await take(queue, second, "edition", "1", owner)
        await queue.call("take_lock", first.job_id, first.attempt_id, "edition", "2", uuid4())
        await queue.maintain()
    assert await queue.sql("select count(*) from fenceline.running") == 2
