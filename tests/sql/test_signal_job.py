"""Durable waits in the database: what a wait takes, when a job goes on, and what is kept of it."""

from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from tests.sql.queue import Attempt, Queue


async def begin(queue: Queue, attempt: Attempt, step: str = "wait:go", **options: Any) -> Any:
    """How the wait ended; None: it goes on."""
    options = {"signal": "go"} | options
    return (await queue.call("begin_wait", attempt.job_id, attempt.attempt_id, step, **options))["ended"]


async def waiting(queue: Queue, **options: Any) -> int:
    """A job that waits outside its slot."""
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    assert attempt.job_id == job
    assert await begin(queue, attempt, **options) is None
    assert await queue.finish(attempt, "waiting") == "accepted"
    return job


async def refusal(queue: Queue, *call: Any) -> str | None:
    try:
        await queue.call(*call)
    except asyncpg.PostgresError as error:
        return error.sqlstate
    return None


async def test_a_waiting_job_holds_no_slot_and_goes_on_with_its_signal(queue: Queue) -> None:
    await queue.set_lane("default", slots=1)
    job = await waiting(queue)
    assert await queue.status(job) == "waiting:signal"
    other = await queue.enqueue()
    assert await queue.claimed_ids(2) == [other]  # the only slot
    await queue.set_lane("default", slots=2)
    assert await queue.call("signal_job", job, "another") == "waiting"
    assert await queue.call("signal_job", job, "go", {"ok": True}) == "queued"
    attempt = await queue.claim_one()
    assert (attempt.job_id, attempt.number, attempt.token & 0xFFFF) == (job, 1, 2)  # no attempt is used up
    answer = await queue.call("begin_wait", job, attempt.attempt_id, "wait:go", "go")
    assert answer == {"ended": "signal", "payload": {"ok": True}}
    start = await queue.call("attempt_start", job)
    assert start["steps"] == {"wait:go": {"args_hash": "signal", "result": {"ok": True}}}


async def test_a_signal_before_its_wait_is_kept_and_taken_once(queue: Queue) -> None:
    job = await queue.enqueue()
    for number in (1, 2):
        assert await queue.call("signal_job", job, "go", number) == "queued"
    attempt = await queue.claim_one()
    me = (job, attempt.attempt_id)
    first = await queue.call("begin_wait", *me, "wait:go", "go")
    again = await queue.call("begin_wait", *me, "wait:go", "go")  # the reply was lost
    second = await queue.call("begin_wait", *me, "wait:go#2", "go")
    assert (first["payload"], again, second["payload"]) == (1, first, 2)
    assert await begin(queue, attempt, "wait:go#3") is None
    assert await queue.sql("select count(*) from fenceline.signal where taken_at is null or payload is not null") == 0


async def test_a_signal_while_the_attempt_still_unwinds_is_not_lost(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    assert await begin(queue, attempt) is None
    assert await queue.call("signal_job", job, "go") == "claimed"
    assert await queue.finish(attempt, "waiting") == "accepted"
    assert await queue.status(job) == "queued"


async def test_a_wait_ends_with_its_time(queue: Queue) -> None:
    job = await waiting(queue, seconds=60)
    await queue.move_clock(59)
    assert (await queue.maintain())["resumed"] == 0
    assert await queue.call("depth") == 0
    await queue.move_clock(1)
    assert await queue.call("depth") == 1
    assert (await queue.maintain())["resumed"] == 1
    attempt = await queue.claim_one()
    assert attempt.job_id == job
    assert await begin(queue, attempt, seconds=60) == "timeout"
    assert await begin(queue, attempt, seconds=60) == "timeout"


async def test_a_wait_that_is_begun_again_keeps_its_time(queue: Queue) -> None:
    """Its worker died before it could say that the handler waits."""
    job = await queue.enqueue()
    for passed in (0, 40):
        await queue.move_clock(passed)
        attempt = await queue.claim_one()
        assert await begin(queue, attempt, seconds=60) is None
        assert await queue.finish(attempt, "released") == "accepted"
    await queue.move_clock(20)
    assert await begin(queue, await queue.claim_one(), seconds=60) == "timeout"
    assert await queue.status(job) == "claimed"


async def test_a_sleep_is_a_timer_and_over_when_that_is(queue: Queue) -> None:
    job = await waiting(queue, signal=None, seconds=3600)
    assert await queue.status(job) == "scheduled"
    assert (await queue.call("explain_job", job))["code"] == "sleeping"
    await queue.move_clock(3600)
    assert (await queue.maintain())["promoted"] == 1
    attempt = await queue.claim_one()
    assert (attempt.job_id, attempt.number) == (job, 1)
    assert await begin(queue, attempt, signal=None, seconds=3600) == "slept"


async def test_run_now_ends_a_sleep(queue: Queue) -> None:
    job = await waiting(queue, signal=None, seconds=3600)
    await queue.call("run_job_now", job)
    assert await begin(queue, await queue.claim_one(), signal=None, seconds=3600) == "slept"


async def test_run_now_does_not_end_a_wait_for_a_signal(queue: Queue) -> None:
    job = await waiting(queue)
    assert await refusal(queue, "run_job_now", job) == "FL011"


async def test_what_waits_can_be_cancelled_and_is_found(queue: Queue) -> None:
    job = await waiting(queue, seconds=60)
    page = (await queue.rows("page_jobs", statuses=["waiting"]))[0]
    assert await queue.public_id(job) in page["jobs"]
    assert await queue.call("cancel_job", job) == "cancelled"
    await queue.move_clock(61)
    assert (await queue.maintain())["resumed"] == 0
    assert await queue.sql("select count(*) from fenceline.wait where due_at is not null") == 0
    assert await refusal(queue, "signal_job", job, "go") == "FL011"
    await queue.call("delete_job", job)
    assert await queue.sql("select count(*) from fenceline.wait") == 0


async def test_a_job_that_is_to_be_cancelled_does_not_wait(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    assert await begin(queue, attempt) is None
    await queue.call("cancel_job", job)
    assert await queue.finish(attempt, "waiting") == "accepted"
    assert await queue.status(job) == "cancelled"


async def test_a_signal_sent_again_counts_once(queue: Queue) -> None:
    job, request = await queue.enqueue(), uuid4()
    for _ in range(2):
        assert await queue.call("signal_job", job, "go", 1, request_id=request) == "queued"
    assert await queue.sql("select count(*) from fenceline.signal") == 1
    events = await queue.events(await queue.public_id(job))
    assert [(event["action"], event["after"]) for event in events] == [("job.signal", {"signal": "go"})]


async def test_signals_are_bounded_and_their_names_checked(queue: Queue) -> None:
    job = await queue.enqueue()
    assert await refusal(queue, "signal_job", job, "No Name") == "FL002"
    assert await refusal(queue, "signal_job", 1, "go") == "FL010"
    assert await refusal(queue, "signal_job", job, "go", None, None, "another") == "FL010"
    await queue.sql("select count(fenceline.signal_job($1, 'go')) from generate_series(1, 1000)", job)
    assert await refusal(queue, "signal_job", job, "go") == "FL023"


async def test_a_retry_keeps_what_was_taken_and_what_was_not(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    for number in (1, 2):
        await queue.call("signal_job", job, "go", number)
    attempt = await queue.claim_one()
    assert await begin(queue, attempt) == "signal"
    assert await queue.finish(attempt, "failed") == "accepted"
    [row] = await queue.rows("retry_job", job)
    attempt = await queue.claim_one()
    assert attempt.job_id == row["job_id"]
    answers = [
        (await queue.call("begin_wait", attempt.job_id, attempt.attempt_id, step, "go"))["payload"]
        for step in ("wait:go", "wait:go#2")
    ]
    assert answers == [1, 2]


async def test_a_job_that_waits_has_begun_and_gives_its_dedupe_key_away(queue: Queue) -> None:
    job = await queue.enqueue(dedupe_key="k")
    attempt = await queue.claim_one()
    assert await begin(queue, attempt) is None
    assert await queue.finish(attempt, "waiting") == "accepted"
    assert await queue.enqueue(dedupe_key="k") != job


async def test_explain_says_what_it_waits_for_and_how_to_signal_it(queue: Queue) -> None:
    job = await waiting(queue, seconds=7200)
    await queue.move_clock(3600)
    told = await queue.call("explain_job", job)
    assert (told["status"], told["code"]) == ("waiting", "signal")
    assert told["text"] == "Its handler has waited 1 h 0 m for signal 'go', and waits 1 h 0 m more. It holds no slot."
    assert told["until"] > told["since"]
    assert told["commands"] == [f"fenceline jobs signal {await queue.public_id(job)} go"]
    await queue.move_clock(3660)
    assert (await queue.call("explain_job", job))["code"] == "wait_overdue"
    patient = await waiting(queue)
    await queue.move_clock(60)
    told = await queue.call("explain_job", patient)
    assert (told["text"], told["until"]) == (
        "Its handler has waited 1 m 0 s for signal 'go'. It holds no slot.",
        None,
    )


async def test_a_wait_is_fenced_and_no_other_step(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("record_step", job, attempt.attempt_id, "load", "h", 1)
    assert await refusal(queue, "begin_wait", job, attempt.attempt_id, "load", "go") == "FL021"
    assert await refusal(queue, "begin_wait", job, attempt.attempt_id, "w", None, None) == "FL007"
    assert await refusal(queue, "begin_wait", job, attempt.attempt_id, "w", "go", -1.0) == "FL007"
    assert await refusal(queue, "begin_wait", job, uuid4(), "w", "go") == "FL012"
    assert await queue.sql("select count(*) from fenceline.wait") == 0


# Callbacks -----------------------------------------------------------------------------------------------------------

SECRET, OTHER = b"s" * 32, b"o" * 32


async def with_callback(queue: Queue) -> int:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("create_callback", job, attempt.attempt_id, "go", SECRET, 60.0)
    await queue.call("create_callback", job, attempt.attempt_id, "go", SECRET, 60.0)  # the reply was lost
    assert await begin(queue, attempt) is None
    assert await queue.finish(attempt, "waiting") == "accepted"
    return job


async def test_a_callback_sends_one_signal_once(queue: Queue) -> None:
    job = await with_callback(queue)
    assert await queue.call("use_callback", OTHER, 1) is False
    assert await queue.call("use_callback", SECRET, {"n": 1}) is True
    assert await queue.call("use_callback", SECRET, {"n": 2}) is False
    assert await queue.status(job) == "queued"
    assert await queue.sql("select jsonb_agg(payload) from fenceline.signal") == [{"n": 1}]


async def test_a_callback_expires(queue: Queue) -> None:
    job = await with_callback(queue)
    await queue.move_clock(60)
    assert await queue.call("use_callback", SECRET) is False
    assert await queue.status(job) == "waiting:signal"


async def test_a_callback_of_an_ended_job_does_nothing(queue: Queue) -> None:
    job = await with_callback(queue)
    await queue.call("cancel_job", job)
    assert await queue.call("use_callback", SECRET) is False
    await queue.call("delete_job", job)
    assert await queue.sql("select count(*) from fenceline.callback") == 0


@pytest.mark.parametrize("seconds", [0.0, 1e9])
async def test_a_callback_is_made_by_a_live_attempt_for_a_time(queue: Queue, seconds: float) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    assert await refusal(queue, "create_callback", job, uuid4(), "go", SECRET, 60.0) == "FL012"
    assert await refusal(queue, "create_callback", job, attempt.attempt_id, "go", b"short", 60.0) == "FL007"
    assert await refusal(queue, "create_callback", job, attempt.attempt_id, "go", SECRET, seconds) == "FL007"
