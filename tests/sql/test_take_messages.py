"""Lanes that a backend delivers: which jobs messages are sent for, when again, and what a message may claim."""

import asyncio
from typing import Any

import asyncpg
import pytest
from tests.conftest import Connect
from tests.sql.queue import Attempt, Queue, use_json
from tests.sql.sessions import waits_or_ends


async def delivered(queue: Queue, lane: str = "default", **changes: Any) -> None:
    await queue.set_lane(lane, delivery="arq", **changes)


async def sent(queue: Queue, **options: Any) -> list[int]:
    return [row["job_id"] for row in await queue.rows("take_messages", "arq", **options)]


async def claim_named(queue: Queue, *job_ids: int, lane: str = "default", worker: int | None = None) -> list[Attempt]:
    rows = await queue.rows("claim_named_jobs", worker or queue.worker, lane, list(job_ids))
    return [Attempt(**row) for row in rows]


async def claimed_named(queue: Queue, *job_ids: int, lane: str = "default") -> list[int]:
    return [attempt.job_id for attempt in await claim_named(queue, *job_ids, lane=lane)]


# What is sent ------------------------------------------------------------------------------------------------


async def test_a_queued_job_is_sent_once_in_the_lanes_order(queue: Queue) -> None:
    await delivered(queue)
    first, urgent = await queue.enqueue(), await queue.enqueue(priority=5)
    assert await sent(queue) == [urgent, first]
    assert await sent(queue) == []
    later = await queue.enqueue()
    assert await sent(queue) == [later]


async def test_only_lanes_of_that_delivery_are_sent(queue: Queue) -> None:
    await queue.enqueue()
    await queue.set_lane("own", delivery="postgres")
    await queue.enqueue(lane="own")
    await queue.set_lane("other", delivery="sqs")
    await queue.enqueue(lane="other")
    assert await sent(queue) == []
    await delivered(queue, "mail")
    job = await queue.enqueue(lane="mail")
    assert await sent(queue, lanes=["default", "own"]) == []
    assert await sent(queue, lanes=["mail"]) == [job]


async def test_jobs_that_were_queued_before_the_lane_was_delivered_are_sent(queue: Queue) -> None:
    job = await queue.enqueue()
    await delivered(queue)
    assert await sent(queue) == [job]


async def test_what_becomes_claimable_again_is_sent_again(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue()
    assert await sent(queue) == [job]
    for outcome in ("released", "failed", "snoozed"):
        [attempt] = await claim_named(queue, job)
        assert await queue.finish(attempt, outcome, delay=5) == "accepted"
        if outcome != "released":
            assert await sent(queue) == []
            await queue.move_clock(6)
            await queue.maintain()
        assert await sent(queue) == [job], outcome


async def test_a_job_is_sent_when_its_gates_are_open(queue: Queue) -> None:
    await delivered(queue)
    approved = await queue.enqueue(needs_approval=True)
    due = await queue.enqueue(run_at=await queue.at(5))
    parent = await queue.enqueue()
    child = await queue.enqueue(after=[parent])
    assert await sent(queue) == [parent]
    [attempt] = await claim_named(queue, parent)
    await queue.finish(attempt)
    assert await sent(queue) == [child]
    await queue.call("approve_job", approved, "ann")
    assert await sent(queue) == [approved]
    await claim_named(queue, child, approved)
    await queue.move_clock(6)
    await queue.maintain()
    assert await sent(queue) == [due]


async def test_keys_are_admitted_by_whoever_sends(queue: Queue) -> None:
    await delivered(queue)
    first, second = await queue.enqueue(key="k"), await queue.enqueue(key="k")
    assert await sent(queue) == [first]
    [attempt] = await claim_named(queue, first)
    assert await sent(queue) == []
    await queue.finish(attempt)
    assert await sent(queue) == [second]


async def test_a_lane_with_slots_has_no_more_messages_than_free_slots(queue: Queue) -> None:
    await delivered(queue, slots=2)
    jobs = [await queue.enqueue() for _ in range(4)]
    assert await sent(queue) == jobs[:2]
    first, _second = await claim_named(queue, *jobs[:2])
    assert await sent(queue) == []
    await queue.finish(first)
    assert await sent(queue) == [jobs[2]]


async def test_a_lane_with_a_rate_has_no_more_messages_than_tokens(queue: Queue) -> None:
    await delivered(queue, rate_per_second=1, burst=2)
    jobs = [await queue.enqueue() for _ in range(4)]
    assert await sent(queue) == jobs[:2]
    assert await claimed_named(queue, *jobs[:2]) == jobs[:2]
    assert await sent(queue) == []
    await queue.move_clock(1)
    assert await sent(queue) == [jobs[2]]


async def test_a_backlog_stays_in_the_database(queue: Queue) -> None:
    await delivered(queue)
    jobs = [await queue.enqueue() for _ in range(5)]
    assert await sent(queue, window=3) == jobs[:3]
    assert await sent(queue, window=3) == []
    assert await claimed_named(queue, jobs[1]) == [jobs[1]]
    urgent = await queue.enqueue(priority=1)
    assert await sent(queue, window=3) == [urgent]


async def test_a_drained_lane_is_silent_and_resumes(queue: Queue) -> None:
    await delivered(queue, enabled=False)
    job = await queue.enqueue()
    assert await sent(queue) == []
    await queue.set_lane("default", enabled=True)
    assert await sent(queue) == [job]


async def test_two_senders_do_not_send_the_same_job(queue: Queue, connect: Connect) -> None:
    await delivered(queue, slots=2)
    jobs = [await queue.enqueue() for _ in range(3)]
    other = await connect()
    async with queue.connection.transaction():
        assert await sent(queue) == jobs[:2]
        waiting = asyncio.create_task(other.fetch("select * from fenceline.take_messages('arq')"))
        assert await waits_or_ends(await connect(), other, waiting)
    assert await waiting == []


async def test_an_open_enqueue_is_sent_after_its_commit_by_anybody(queue: Queue, connect: Connect) -> None:
    await delivered(queue)
    producer = await connect()
    await use_json(producer)
    async with producer.transaction():
        job = await producer.fetchval("select job_id from fenceline.enqueue('work')")
        assert await sent(queue) == []
    assert await sent(queue) == [job]


# What is lost ------------------------------------------------------------------------------------------------


async def test_a_message_that_no_claim_answers_is_sent_again(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue()
    assert await sent(queue) == [job]
    await queue.move_clock(1.9)
    assert (await queue.maintain())["resent"] == 0
    assert await sent(queue) == []
    await queue.move_clock(0.2)
    assert (await queue.maintain())["resent"] == 1
    assert await sent(queue) == [job]


async def test_what_is_no_longer_queued_is_not_sent_again(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue()
    await sent(queue)
    await queue.call("cancel_job", job, "ann")
    await queue.move_clock(3)
    assert (await queue.maintain())["resent"] == 0
    assert await sent(queue) == []
    assert await queue.sql("select count(*) from fenceline.message") == 0


async def test_maintenance_says_which_deliveries_have_something_to_send(queue: Queue) -> None:
    assert (await queue.maintain())["messages_due"] is None
    await delivered(queue)
    assert (await queue.maintain())["messages_due"] is None
    await queue.enqueue()
    assert (await queue.maintain())["messages_due"] == ["arq"]


async def test_a_worker_that_has_nothing_to_send_is_notified(queue: Queue, connect: Connect) -> None:
    await delivered(queue)
    heard: list[object] = []
    listener = await connect()
    await listener.add_listener("fenceline_ready", lambda *said: heard.append(said[3]))
    assert await sent(queue, worker_id=queue.worker, wait_seconds=60.0) == []
    await queue.enqueue()
    await listener.execute("select 1")
    assert heard == ["default"]


# What a message may claim ------------------------------------------------------------------------------------


async def test_a_message_claims_the_very_job(queue: Queue) -> None:
    await delivered(queue)
    first, second = await queue.enqueue("work", {"n": 1}), await queue.enqueue("work", {"n": 2})
    [attempt] = await claim_named(queue, second)
    assert (attempt.job_id, attempt.args, attempt.number) == (second, {"n": 2}, 1)
    assert await queue.statuses([first, second]) == ["queued", "claimed"]
    assert await queue.finish(attempt) == "accepted"


async def test_a_message_for_a_job_that_is_claimed_or_gone_is_dropped(queue: Queue) -> None:
    await delivered(queue)
    claimed, cancelled, waiting = await queue.enqueue(), await queue.enqueue(), await queue.enqueue()
    await claim_named(queue, claimed)
    await queue.call("cancel_job", cancelled, "ann")
    assert await claimed_named(queue, claimed, cancelled, 12345, waiting) == [waiting]


async def test_several_are_claimed_in_the_lanes_order(queue: Queue) -> None:
    await delivered(queue)
    jobs = [await queue.enqueue(priority=priority) for priority in (0, 2, 1)]
    assert await claimed_named(queue, *jobs) == [jobs[1], jobs[2], jobs[0]]


async def test_a_delivered_lane_gives_its_jobs_to_those_with_a_message_only(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue()
    assert await queue.claim() == []
    await queue.set_lane("default", delivery=None)
    assert await queue.claimed_ids() == [job]


async def test_slots_drain_rate_kinds_and_addresses_hold_for_messages_too(queue: Queue) -> None:
    await delivered(queue, slots=1)
    first, second = await queue.enqueue(), await queue.enqueue()
    assert await claimed_named(queue, first, second) == [first]
    await queue.set_lane("default", slots=None, enabled=False)
    assert await claimed_named(queue, second) == []
    await queue.set_lane("default", enabled=True, rate_per_second=0.001, burst=1)
    assert await claimed_named(queue, second) == [second]
    third = await queue.enqueue()
    assert await claimed_named(queue, third) == []
    await queue.set_lane("default", rate_per_second=None)
    await queue.set_lane("mail")
    other_lane = await queue.enqueue(lane="mail")
    addressed = await queue.enqueue(runner="somebody")
    assert await claimed_named(queue, other_lane, addressed) == []
    clerk = await queue.register("clerk", kinds=["letters"])
    assert await claim_named(queue, third, worker=clerk) == []


async def test_an_expired_job_is_not_started_by_its_message(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue(expires_at=await queue.at(5))
    await sent(queue)
    await queue.move_clock(6)
    assert await claimed_named(queue, job) == []
    assert await queue.status(job) == "cancelled"


async def test_suspects_are_claimed_from_the_database(queue: Queue) -> None:
    await delivered(queue)
    first, second = await queue.enqueue(), await queue.enqueue()
    attempts = await claim_named(queue, first, second)
    await queue.call("report_death", queue.worker, {"suspects": [str(attempt.attempt_id) for attempt in attempts]})
    queue.worker = await queue.register(lease_seconds=86400)
    assert await sent(queue) == []
    assert await claimed_named(queue, first, second) == []
    assert await queue.claimed_ids(5, alone=True) == [first, second]


async def test_the_same_request_again_returns_the_same_attempts(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue()
    request = "00000000-0000-4000-8000-000000000001"
    [first] = await queue.rows("claim_named_jobs", queue.worker, "default", [job], request_id=request)
    [again] = await queue.rows("claim_named_jobs", queue.worker, "default", [job], request_id=request)
    assert first["attempt_id"] == again["attempt_id"]


async def test_a_claim_needs_a_lease(queue: Queue) -> None:
    await delivered(queue)
    job = await queue.enqueue()
    await queue.call("stop_worker", queue.worker)
    with pytest.raises(asyncpg.PostgresError, match="register again"):
        await claim_named(queue, job)


# What is shown -----------------------------------------------------------------------------------------------


async def test_a_job_shows_its_delivery_and_the_name_of_its_message(queue: Queue) -> None:
    await delivered(queue, "mail")
    plain, short = await queue.enqueue(), await queue.enqueue(lane="mail")
    gated = await queue.enqueue(lane="mail", key="k")
    assert [(await queue.job(job))["delivery"] for job in (plain, short, gated)] == ["postgres", "arq", "arq"]
    assert (await queue.job(plain))["backend_job_id"] is None
    assert (await queue.job(short))["backend_job_id"] == await queue.public_id(short)
    await queue.call("name_messages", [short, plain], ["sqs-17", "sqs-18"])
    assert [(await queue.job(job))["backend_job_id"] for job in (short, plain)] == ["sqs-17", None]


async def test_a_kinds_own_lane_is_delivered_on_the_short_way_too(queue: Queue) -> None:
    await delivered(queue, "mail", kinds=["letter"])
    job = await queue.enqueue("letter")
    assert (await queue.job(job))["delivery"] == "arq"
    assert await sent(queue) == [job]


async def test_a_program_says_how_its_lanes_are_delivered_where_nobody_has(queue: Queue) -> None:
    await queue.set_lane("own", delivery="postgres")
    await queue.set_lane("mail")
    await queue.call("declare_delivery", ["own", "mail"], "arq")
    lanes = {row["lane"]: row["delivery"] for row in await queue.rows("lane_deliveries")}
    assert lanes == {"mail": "arq"}


@pytest.mark.parametrize("delivery", ["inline", "Arq", "", "a b"])
async def test_a_lane_refuses_what_is_no_delivery(queue: Queue, delivery: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as refused:
        await queue.set_lane("mail", delivery=delivery)
    assert refused.value.sqlstate == ("FL018" if delivery == "inline" else "FL002")
    assert await queue.sql("select count(*) from fenceline.lane where name = 'mail'") == 0
