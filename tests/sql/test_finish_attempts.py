"""The end of attempts: every outcome, the fence, and replays."""

from uuid import uuid4

import pytest
from tests.sql.queue import Attempt, Queue


async def test_success_with_a_result(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.run(job, "succeeded", result={"rows": 3}, metadata={"host": "a"})
    row = await queue.job(job)
    assert (row["status"], row["result"], row["worker"], row["attempt"]) == ("succeeded", {"rows": 3}, "worker", 1)
    assert row["finished_at"] is not None
    assert (await queue.attempts(job))[0]["metadata"] == {"host": "a"}


async def test_success_with_errors(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.run(job, "succeeded_with_errors", result=1, errors=[{"message": "one of many"}])
    row = await queue.job(job)
    assert (row["status"], row["errors"]) == ("succeeded_with_errors", [{"message": "one of many"}])


async def test_a_failure_is_retried_until_the_attempts_are_used(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=2, retry={"backoff": "fixed", "base": 10, "jitter": 0})
    await queue.run(job, "failed", error={"code": "boom", "message": "first"})
    assert await queue.status(job) == "scheduled"
    assert (await queue.job(job))["attempt"] == 1
    await queue.move_clock(9)
    await queue.maintain()
    assert await queue.claim() == []
    await queue.move_clock(1)
    await queue.maintain()
    await queue.run(job, "failed", error={"code": "boom", "message": "second"})
    row = await queue.job(job)
    assert (row["status"], row["attempt"], row["error"]["message"]) == ("failed", 2, "second")
    assert [attempt["outcome"] for attempt in await queue.attempts(job)] == ["failed", "failed"]
    assert [attempt["final"] for attempt in await queue.attempts(job)] == [False, True]


async def test_the_kinds_policy_counts_where_the_job_has_none_and_a_delay_beats_both(queue: Queue) -> None:
    await queue.call("declare_kinds", {"work": {"retry": {"backoff": [100, 200], "jitter": 0}}})
    job = await queue.enqueue(max_attempts=9)
    for delay, expected in [(None, 100), (None, 200), (7, 7), (None, 200)]:
        await queue.run(job, "failed", delay=delay)
        waits = "select extract(epoch from run_at - fenceline.clock())::int from fenceline.timer"
        assert await queue.sql(waits) == expected
        await queue.move_clock(expected)
        await queue.maintain()


async def test_a_failure_for_good_is_not_retried(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.run(job, "failed_for_good", error={"code": "invalid_args", "message": "no"})
    row = await queue.job(job)
    assert (row["status"], row["attempt"], row["error"]["code"]) == ("failed", 1, "invalid_args")


async def test_cancelled_by_the_handler(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.run(job, "cancelled", error={"code": "cancelled", "message": "not needed"})
    assert await queue.status(job) == "cancelled"


async def test_a_snooze_comes_back_later_and_costs_nothing(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    for _ in range(3):
        attempt = await queue.run(job, "snoozed", delay=30)
        assert attempt.number == 1
        assert (await queue.status(job), (await queue.job(job))["attempt"]) == ("scheduled", 0)
        await queue.move_clock(30)
        await queue.maintain()
    await queue.run(job, "snoozed")
    assert await queue.status(job) == "queued"


async def test_a_release_is_back_at_once_and_costs_nothing(queue: Queue) -> None:
    job = await queue.enqueue(max_attempts=1)
    for _ in range(3):
        assert (await queue.run(job, "released")).number == 1
    assert (await queue.job(job))["attempt"] == 0


async def test_an_expiry_is_met_by_a_start_but_not_by_a_release(queue: Queue) -> None:
    failed, started, released = [await queue.enqueue(expires_at=await queue.at(10)) for _ in range(3)]
    await queue.run(failed, "failed", delay=60)
    attempts = await queue.claim(2)
    await queue.rows("start_attempts", [started], [attempts[0].attempt_id])
    for attempt in attempts:
        await queue.finish(attempt, "released")
    await queue.move_clock(20)
    assert (await queue.maintain())["expired"] == 1
    assert await queue.statuses([failed, started, released]) == ["scheduled", "queued", "cancelled"]
    assert await queue.claimed_ids() == [started]


async def test_a_job_asked_to_stop_ends_where_it_would_go_back(queue: Queue) -> None:
    for outcome in ("failed", "snoozed", "released"):
        job = await queue.enqueue()
        attempt = await queue.claim_one()
        await queue.call("cancel_job", job, "ann", "enough")
        assert await queue.finish(attempt, outcome) == "accepted"
        row = await queue.job(job)
        assert (row["status"], row["error"]) == ("cancelled", {"code": "cancelled", "message": "enough"})
        assert await queue.finish(attempt, outcome) == "already"


async def test_a_job_asked_to_stop_may_still_succeed(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("cancel_job", job)
    await queue.finish(attempt)
    assert await queue.status(job) == "succeeded"


# The fence --------------------------------------------------------------------------------------------------------


async def test_a_stale_attempt_changes_nothing(queue: Queue) -> None:
    worker = await queue.register(lease_seconds=10)
    job = await queue.enqueue()
    old = await queue.claim_one(worker=worker)
    await queue.move_clock(11)
    await queue.maintain()
    new = await queue.claim_one()
    before = await queue.contents()
    for outcome in (
        "succeeded",
        "succeeded_with_errors",
        "failed",
        "failed_for_good",
        "cancelled",
        "snoozed",
        "released",
    ):
        assert await queue.finish(old, outcome) == "stale"
    assert await queue.contents() == before
    assert await queue.finish(new) == "accepted"
    assert await queue.finish(old) == "stale"
    assert await queue.status(job) == "succeeded"


async def test_an_attempt_of_another_job_is_stale(queue: Queue) -> None:
    await queue.enqueue()
    await queue.enqueue()
    first, second = await queue.claim(2)
    assert await queue.call("finish_attempt", first.job_id, second.attempt_id) == "stale"
    assert await queue.call("finish_attempt", first.job_id, uuid4()) == "stale"
    assert await queue.call("finish_attempt", 12345, first.attempt_id) == "stale"
    assert await queue.call("finish_attempt", first.job_id, None) == "stale"
    assert await queue.call("finish_attempt", None, first.attempt_id) == "stale"
    assert await queue.statuses([first.job_id, second.job_id]) == ["claimed", "claimed"]


@pytest.mark.parametrize(
    "outcome", ["succeeded", "succeeded_with_errors", "failed", "failed_for_good", "cancelled", "snoozed", "released"]
)
async def test_an_exact_replay_is_already_and_another_outcome_is_stale(queue: Queue, outcome: str) -> None:
    await queue.enqueue()
    attempt = await queue.claim_one()
    assert await queue.finish(attempt, outcome, delay=60) == "accepted"
    before = await queue.contents()
    assert await queue.finish(attempt, outcome, delay=60) == "already"
    other = "failed" if outcome != "failed" else "succeeded"
    assert await queue.finish(attempt, other) == "stale"
    assert await queue.contents() == before


# Batches ----------------------------------------------------------------------------------------------------------


async def finish_all(queue: Queue, attempts: list[Attempt], outcomes: list[str | None] | None) -> dict[int, str]:
    rows = await queue.rows("finish_attempts", [a.job_id for a in attempts], [a.attempt_id for a in attempts], outcomes)
    return {row["job_id"]: row["verdict"] for row in rows}


async def test_a_batch_of_every_outcome(queue: Queue) -> None:
    outcomes: list[str | None] = ["succeeded", "failed", "snoozed", None, "released", "failed_for_good", "cancelled"]
    jobs = [await queue.enqueue() for _ in outcomes]
    attempts = await queue.claim(len(outcomes))
    assert await finish_all(queue, attempts, outcomes) == {}
    assert await queue.statuses(jobs) == [
        "succeeded", "scheduled", "queued", "succeeded", "queued", "failed", "cancelled",
    ]  # fmt: skip


async def test_without_outcomes_all_succeeded(queue: Queue) -> None:
    jobs = [await queue.enqueue() for _ in range(3)]
    assert await finish_all(queue, await queue.claim(3), None) == {}
    assert await queue.statuses(jobs) == ["succeeded"] * 3


async def test_only_what_was_not_accepted_comes_back(queue: Queue) -> None:
    for _ in range(3):
        await queue.enqueue()
    attempts = await queue.claim(3)
    await queue.finish(attempts[0])
    await queue.finish(attempts[1], "failed_for_good")
    verdicts = await finish_all(queue, attempts, None)
    assert verdicts == {attempts[0].job_id: "already", attempts[1].job_id: "stale"}


async def test_an_old_and_the_live_attempt_of_one_job_in_one_batch(queue: Queue) -> None:
    job = await queue.enqueue()
    old = await queue.run(job, "released")
    live = await queue.claim_one()
    rows = await queue.rows("finish_attempts", [job, job], [old.attempt_id, live.attempt_id])
    assert [(row["attempt_id"], row["verdict"]) for row in rows] == [(old.attempt_id, "stale")]
    assert await queue.status(job) == "succeeded"


async def test_the_start_travels_with_the_finish(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.move_clock(10)
    await queue.rows("finish_attempts", [job], [attempt.attempt_id], ran_seconds=[4.0])
    taken = "select extract(epoch from finished_at - started_at)::float8 from fenceline.jobs where job_id = $1"
    assert await queue.sql(taken, job) == 4


async def test_what_became_of_attempts_is_told(queue: Queue) -> None:
    again, last, well, live = [await queue.enqueue(max_attempts=2 if n == 0 else 1) for n in range(4)]
    attempts = await queue.claim(4)
    for attempt in attempts[:2]:
        await queue.finish(attempt, "failed", delay=7)
    await queue.finish(attempts[2])
    rows = await queue.rows("attempt_ends", [again, last, well, live], [a.attempt_id for a in attempts])
    assert {row["attempt_id"]: (row["is_final"], row["asked"], row["next_seconds"]) for row in rows} == {
        attempts[0].attempt_id: (False, "failed", 7.0),
        attempts[1].attempt_id: (True, "failed", None),
        attempts[2].attempt_id: (True, "succeeded", None),
    }
