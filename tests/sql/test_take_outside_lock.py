"""Locks of code outside handlers: the same locks as those of running jobs, each block with a lease of its own."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from tests.sql.queue import Queue
from tests.sql.test_clock_step import STEPS, keep_looking
from tests.sql.test_describe_locks import locks

LEASE = 10.0


@dataclass(frozen=True, slots=True)
class Block:
    """One `with app.lock(…)`, or of a job: one `with ctx.lock(…)`."""

    queue: Queue
    actor: str = "ann"
    owner: UUID = field(default_factory=uuid4)

    async def take(self, name: str | None = "1", **changes: Any) -> int | None:
        """The fencing token; None: it waits."""
        given = {"tenant": "default", "namespace": "edition", "holding": [], "lease_seconds": LEASE, **changes}
        token = await self.queue.call("take_outside_lock", name=name, owner=self.owner, actor=self.actor, **given)
        assert token is None or isinstance(token, int)
        return token

    async def keep(self) -> str | None:
        """None: it is kept."""
        rows = await self.queue.rows("keep_outside_locks", [self.owner])
        return rows[0]["word"] if rows else None

    async def release(self) -> tuple[bool, UUID | None]:
        answer = await self.queue.call("release_outside_lock", self.owner)
        return answer["held"], answer["next"] and UUID(answer["next"])


@dataclass(frozen=True, slots=True)
class JobBlock:
    queue: Queue
    job_id: int
    attempt_id: UUID
    owner: UUID = field(default_factory=uuid4)

    async def take(self, holding: list[UUID] | None = None) -> bool:
        me = (self.job_id, self.attempt_id)
        taken = await self.queue.call("take_lock", *me, "edition", "1", self.owner, holding or [])
        assert isinstance(taken, bool)
        return taken

    async def release(self) -> UUID | None:
        following: UUID | None = await self.queue.call("release_lock", self.job_id, self.owner)
        return following


async def job_block(queue: Queue) -> JobBlock:
    await queue.enqueue()
    attempt = await queue.claim_one()
    return JobBlock(queue, attempt.job_id, attempt.attempt_id)


async def test_one_at_a_time_with_handlers_and_in_the_order_of_asking(queue: Queue) -> None:
    first, third = Block(queue), Block(queue)
    second, fourth = await job_block(queue), await job_block(queue)
    assert await first.take()
    assert not await second.take()
    assert not await third.take()
    assert not await fourth.take()
    assert await first.release() == (True, second.owner)
    assert not await third.take(), "it is free, but there is a line"
    assert await second.take()
    assert await second.release() == third.owner
    assert not await fourth.take()
    assert await third.take()
    assert await third.release() == (True, fourth.owner)
    assert await fourth.take()
    assert await fourth.release() is None
    assert await queue.sql("select count(*) from fenceline.lock_lease") == 0


async def test_the_token_grows_and_a_lost_reply_is_answered_again(queue: Queue) -> None:
    first, second = Block(queue), Block(queue)
    token = await first.take()
    assert token is not None
    assert await first.take() == token
    await first.release()
    await queue.step_clock(-3600)
    later = await second.take()
    assert later is not None
    assert later > token, "whatever the clock says"


async def test_other_names_and_tenants_are_other_locks(queue: Queue) -> None:
    assert await Block(queue).take()
    assert await Block(queue).take("2")
    assert await Block(queue).take(namespace="project")
    assert await Block(queue).take(tenant="acme")


@pytest.mark.parametrize("by_maintenance", [True, False])
async def test_the_next_has_it_when_the_lease_is_over(queue: Queue, by_maintenance: bool) -> None:  # noqa: FBT001 - drawn by name
    await queue.maintain()  # somebody does it all the time, so a gap is no step of the clock
    gone, given_up, heir = Block(queue), Block(queue), await job_block(queue)
    assert await gone.take()
    assert not await given_up.take()
    assert not await heir.take()
    await queue.move_clock(LEASE - 1)
    assert not await heir.take(), "it may come back"
    await queue.move_clock(2)
    if by_maintenance:
        assert (await queue.maintain())["unlocked"] == 2
        assert await queue.sql("select count(*) from fenceline.attempt_lock") == 0
    assert await heir.take(), "neither its holder nor the one ahead was heard of"
    assert await gone.keep() == "lost"
    assert await gone.release() == (False, None)
    assert not await Block(queue).take(), "the heir still has it"


async def test_who_is_heard_of_keeps_it(queue: Queue) -> None:
    holder, waiting, late = Block(queue), Block(queue), Block(queue)
    assert await holder.take()
    for _ in range(4):
        assert not await waiting.take(), "asking again renews the lease of who waits"
        assert not await late.take()
        await queue.move_clock(LEASE * 0.6)
        assert await holder.keep() is None
        await queue.maintain()
        await queue.call("upkeep", 0.0)
    assert await holder.release() == (True, waiting.owner)
    assert not await late.take()
    assert await waiting.take(), "in turn"


async def test_a_late_renewal_holds_while_nobody_has_noticed(queue: Queue) -> None:
    holder = Block(queue)
    assert await holder.take()
    await queue.move_clock(LEASE * 3)
    assert await holder.keep() is None
    assert not await Block(queue).take()


@STEPS
@pytest.mark.parametrize("looks", ["maintain", "take"])
async def test_a_lease_is_as_long_as_it_was_when_the_clock_is_set(queue: Queue, step: int, looks: str) -> None:
    live, gone, waiting = Block(queue), Block(queue), Block(queue)
    assert await live.take("live")
    assert await gone.take()

    async def look() -> None:
        await (waiting.take() if looks == "take" else queue.maintain())

    await keep_looking(queue)
    for _ in range(3):
        await look()
        await queue.move_clock(0.5)
    await look()
    await queue.step_clock(step)
    await look()
    assert not await waiting.take(), "nobody has lost anything"
    for _ in range(12):
        assert await live.keep() is None
        await queue.move_clock(1)
        await look()
    assert await gone.keep() == "lost", "found as soon as without the step"


async def test_waits_that_go_round_are_refused(queue: Queue) -> None:
    outside, inner = Block(queue), Block(queue)
    job = await job_block(queue)
    assert await job.take()
    assert await outside.take("2")
    crossed = JobBlock(queue, job.job_id, job.attempt_id)
    assert not await queue.call("take_lock", job.job_id, job.attempt_id, "edition", "2", crossed.owner, [job.owner])
    with pytest.raises(asyncpg.PostgresError) as refused:
        await inner.take("1", holding=[outside.owner])
    assert refused.value.sqlstate == "FL022"
    job_id = await queue.public_id(job.job_id)
    assert f"app.lock of ann would wait for ever: lock edition '1' is held by job {job_id}" in str(refused.value)
    with pytest.raises(asyncpg.PostgresError) as refused:
        await Block(queue).take("2", holding=[outside.owner])
    assert "app.lock of ann would wait for itself" in str(refused.value)


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"namespace": "No Such"}, "FL002"),
        ({"namespace": None}, "FL002"),
        ({"tenant": ""}, "FL002"),
        ({"name": ""}, "FL007"),
        ({"name": None}, "FL007"),
        ({"name": "x" * 201}, "FL007"),
        ({"lease_seconds": 0.5}, "FL007"),
        ({"lease_seconds": 3601.0}, "FL007"),
        ({"lease_seconds": float("nan")}, "FL007"),
        ({"lease_seconds": None}, "FL007"),
    ],
)
async def test_bad_input_is_refused(queue: Queue, changes: dict[str, Any], code: str) -> None:
    before = await queue.contents()
    with pytest.raises(asyncpg.PostgresError) as refused:
        await Block(queue).take(**changes)
    assert refused.value.sqlstate == code
    assert await queue.contents() == before


async def test_it_is_shown_wherever_locks_are(queue: Queue) -> None:
    outside, job = Block(queue), await job_block(queue)
    assert await outside.take()
    await queue.move_clock(3)
    assert not await job.take()
    held, waited = await locks(queue)
    assert (held["job"], held["actor"], held["held"], held["holder"]) == (None, "ann", True, None)
    assert (waited["job"], waited["actor"]) == (await queue.public_id(job.job_id), None)
    assert (waited["holder"], waited["holder_actor"]) == (None, "ann")
    assert [(row["job"], row["job_id"], row["held"]) for row in await queue.rows("list_locks")] == [
        (None, None, True),
        (await queue.public_id(job.job_id), job.job_id, False),
    ]
    told = await queue.call("explain_job", job.job_id)
    assert "edition/1, which code outside jobs (ann) has held for 3 s" in told["text"]
    assert ("holder" in told["details"], told["details"]["holder_actor"]) == (False, "ann")
    assert told["commands"][0] == "fenceline locks"
    for _ in range(10):
        await queue.move_clock(6)
        await outside.keep()
    (found,) = await queue.rows("long_locks", 60.0)
    assert (found["holder"], found["holder_actor"], found["waiters"]) == (None, "ann", 1)


async def test_others_are_not_named_to_who_sees_only_their_own(queue: Queue) -> None:
    await Block(queue, "ann").take()
    await Block(queue, "bob").take()
    (mine,) = await locks(queue, None, created_by="bob")
    assert (mine["actor"], mine["held"], mine["holder_actor"]) == ("bob", False, None)
    assert await locks(queue, None, tenant="rival") == []
