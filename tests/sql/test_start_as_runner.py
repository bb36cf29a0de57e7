"""Starts and reports of runners, many at a time: each attempt is judged by itself, and only its owner writes for it."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.sql.queue import Attempt, Queue

OWNER, TENANT = "token:1", "acme"


async def claimed_by_runner(queue: Queue, count: int = 1, *, owner: str = OWNER, **options: Any) -> list[Attempt]:
    """Jobs in the hands of somebody's runner."""
    for _ in range(count):
        await queue.enqueue(**{"tenant": TENANT, **options})
    runner = await queue.register("runner", runner=True, owner=owner)
    return await queue.claim(count, worker=runner)


async def verdicts(queue: Queue, function: str, attempts: list[tuple[int, UUID]], *values: Any) -> dict[int, str]:
    """By place, of those that were not accepted."""
    job_ids, attempt_ids = [job_id for job_id, _ in attempts], [attempt_id for _, attempt_id in attempts]
    rows = await queue.rows(function, OWNER, TENANT, job_ids, attempt_ids, *values)
    return {row["place"]: row["verdict"] for row in rows}


async def write(queue: Queue, function: str, attempts: list[tuple[int, UUID]]) -> dict[int, str]:
    if function == "start_as_runner":
        return await verdicts(queue, function, attempts, [0.0] * len(attempts))
    return await report(queue, attempts, [[{"message": "here"}]] * len(attempts))


async def report(
    queue: Queue, attempts: list[tuple[int, UUID]], lines: list[Any], offsets: list[int] | None = None
) -> dict[int, str]:
    rows = await queue.connection.fetch(
        "select * from fenceline.report_as_runner($1, $2, $3, $4, $5::text[]::jsonb[], $6::text[]::jsonb[], $7)",
        *(OWNER, TENANT, [job_id for job_id, _ in attempts], [attempt_id for _, attempt_id in attempts]),
        [None if some is None else json.dumps(some) for some in lines],
        [json.dumps({"done": place}) for place, _ in enumerate(attempts)],
        offsets or [0] * len(attempts),
    )
    return {row["place"]: row["verdict"] for row in rows}


def pair(attempt: Attempt) -> tuple[int, UUID]:
    return attempt.job_id, attempt.attempt_id


async def traces(queue: Queue, attempt: Attempt) -> tuple[str, object, list[str]]:
    """What a start or a report leaves behind."""
    job = await queue.job(attempt.job_id)
    lines = [row["message"] for row in await queue.rows("read_log", attempt.job_id)]
    return job["status"], job["progress"], lines


UNTOUCHED: tuple[str, object, list[str]] = ("claimed", None, [])


@pytest.mark.parametrize("function", ["start_as_runner", "report_as_runner"])
async def test_each_has_a_verdict_and_the_others_go_on(queue: Queue, function: str) -> None:
    mine, ended = await claimed_by_runner(queue, 2)
    await queue.finish(ended)
    attempts = [pair(ended), (12345, uuid4()), pair(mine), (mine.job_id, uuid4())]
    assert await write(queue, function, attempts) == {1: "stale", 2: "not_found", 4: "stale"}
    expected = ("running", None, []) if function == "start_as_runner" else ("claimed", {"done": 2}, ["here"])
    assert await traces(queue, mine) == expected


@pytest.mark.parametrize("function", ["start_as_runner", "report_as_runner"])
async def test_nobody_writes_for_a_runner_of_another_token(queue: Queue, function: str) -> None:
    [theirs] = await claimed_by_runner(queue, owner="token:2")
    assert await write(queue, function, [pair(theirs)]) == {1: "forbidden"}
    assert await traces(queue, theirs) == UNTOUCHED


@pytest.mark.parametrize("function", ["start_as_runner", "report_as_runner"])
async def test_nobody_writes_for_a_worker(queue: Queue, function: str) -> None:
    await queue.enqueue(tenant=TENANT)
    worker = await queue.register("worker", owner=OWNER)
    attempt = await queue.claim_one(worker=worker)
    assert await write(queue, function, [pair(attempt)]) == {1: "forbidden"}
    assert await traces(queue, attempt) == UNTOUCHED


@pytest.mark.parametrize("function", ["start_as_runner", "report_as_runner"])
async def test_another_tenants_job_is_a_missing_one(queue: Queue, function: str) -> None:
    [foreign] = await claimed_by_runner(queue, tenant="other")
    assert await write(queue, function, [pair(foreign)]) == {1: "not_found"}
    assert await traces(queue, foreign) == UNTOUCHED


async def test_a_report_sent_again_is_written_once(queue: Queue) -> None:
    [attempt] = await claimed_by_runner(queue)
    for _ in range(2):
        assert await report(queue, [pair(attempt)], [[{"message": "a"}, {"message": "b"}]], [0]) == {}
    assert await report(queue, [pair(attempt)], [[{"message": "c"}]], [2]) == {}
    assert [row["message"] for row in await queue.rows("read_log", attempt.job_id)] == ["a", "b", "c"]


async def test_parts_of_one_report_are_written_in_their_order(queue: Queue) -> None:
    """Many, so that a sort that forgets their places shows."""
    attempts = await claimed_by_runner(queue, 3)
    parts = [(attempt, number) for attempt in reversed(attempts) for number in range(20)]
    lines = [[{"message": str(number)}] for _attempt, number in parts]
    given = [pair(attempt) for attempt, _number in parts]
    assert await report(queue, given, lines, [number for _attempt, number in parts]) == {}
    for attempt in attempts:
        written = [row["message"] for row in await queue.rows("read_log", attempt.job_id)]
        assert written == [str(number) for number in range(20)]


async def test_how_long_ago_each_started_goes_with_its_attempt(queue: Queue) -> None:
    first, gone, last = await claimed_by_runner(queue, 3)
    await queue.finish(gone, "released")
    await queue.move_clock(10)
    attempts = [pair(first), pair(gone), pair(last)]
    assert await verdicts(queue, "start_as_runner", attempts, [1.0, 2.0, 3.0]) == {2: "stale"}
    ago = "select extract(epoch from fenceline.clock() - started_at)::float8 from fenceline.running where job_id = $1"
    assert [await queue.sql(ago, attempt.job_id) for attempt in (first, last)] == [1, 3]


async def test_what_a_runner_promised_to_tell_is_refunded_untold_and_counted_told(queue: Queue) -> None:
    untold, told, unpromised = (
        *await claimed_by_runner(queue, max_attempts=1),
        *await claimed_by_runner(queue, max_attempts=1),
        *await claimed_by_runner(queue, max_attempts=1),
    )
    for attempt in (untold, told):
        runner = await queue.sql("select worker_id from fenceline.running where job_id = $1", attempt.job_id)
        await queue.call("promise_starts", runner)
    assert await verdicts(queue, "start_as_runner", [pair(told)], [0.0]) == {}
    await queue.move_clock(40)
    await queue.maintain()
    jobs = [attempt.job_id for attempt in (untold, told, unpromised)]
    assert await queue.statuses(jobs) == ["queued", "failed", "failed"]
