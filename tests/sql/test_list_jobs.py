"""Lists: filters, order and pages."""

from datetime import timedelta
from typing import Any

from tests.sql.queue import Queue


async def listed(queue: Queue, **filters: Any) -> list[str]:
    return [job["id"] for job in await queue.call("list_jobs", **filters)]


async def every_status(queue: Queue) -> dict[str, int]:
    """One job in every status."""
    jobs: dict[str, int] = {}
    for outcome in ("succeeded", "succeeded_with_errors", "failed", "cancelled"):
        asked = "failed_for_good" if outcome == "failed" else outcome
        jobs[outcome] = await queue.finished(outcome=asked)
    jobs["claimed"] = await queue.enqueue()
    await queue.claim_one()
    jobs["running"] = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.rows("start_attempts", [attempt.job_id], [attempt.attempt_id])
    jobs["queued"] = await queue.enqueue()
    jobs["scheduled"] = await queue.enqueue(run_at=await queue.at(60))
    jobs["awaiting_approval"] = await queue.enqueue(needs_approval=True)
    jobs["waiting"] = await queue.enqueue(after=[jobs["queued"]])
    return jobs


async def test_by_status(queue: Queue) -> None:
    jobs = await every_status(queue)
    for status, job in jobs.items():
        assert await listed(queue, statuses=[status]) == [await queue.public_id(job)], status
    newest_first = [await queue.public_id(job) for job in sorted(jobs.values(), reverse=True)]
    assert await listed(queue) == newest_first
    assert await listed(queue, statuses=list(jobs)) == newest_first
    keyed = await queue.enqueue(key="k")
    assert await listed(queue, statuses=["waiting"]) == [await queue.public_id(job) for job in (keyed, jobs["waiting"])]


async def test_within_a_filter_any_value_matches_and_all_filters_must(queue: Queue) -> None:
    a = await queue.public_id(await queue.enqueue("a", tenant="t1", lane="system"))
    b = await queue.public_id(await queue.enqueue("b", tenant="t1"))
    c = await queue.public_id(await queue.enqueue("c", tenant="t2"))
    assert await listed(queue, kinds=["a", "c"]) == [c, a]
    assert await listed(queue, tenants=["t1"]) == [b, a]
    assert await listed(queue, lanes=["system"]) == [a]
    assert await listed(queue, kinds=["a", "c"], tenants=["t1"]) == [a]
    assert await listed(queue, kinds=["a"], tenants=["t2"]) == []
    assert await listed(queue, statuses=["queued"], kinds=["b"]) == [b]
    assert await listed(queue, statuses=["failed"], kinds=["b"]) == []


async def test_labels_must_all_match(queue: Queue) -> None:
    both = await queue.public_id(await queue.enqueue(labels={"project": "x", "build": "7"}))
    one = await queue.public_id(await queue.enqueue(labels={"project": "x"}))
    await queue.enqueue()
    assert await listed(queue, labels={"project": "x"}) == [one, both]
    assert await listed(queue, labels={"project": "x", "build": "7"}) == [both]


async def test_by_time_and_by_who_enqueued(queue: Queue) -> None:
    start = await queue.sql("select fenceline.clock()")
    early = await queue.public_id((await queue.rows("enqueue", "work", {}, {}, "ann"))[0]["job_id"])
    await queue.move_clock(60)
    late = await queue.public_id((await queue.rows("enqueue", "work", {}, {}, "bob"))[0]["job_id"])
    middle = start + timedelta(seconds=30)
    assert await listed(queue, created_after=middle) == [late]
    assert await listed(queue, created_before=middle) == [early]
    assert await listed(queue, created_after=start, created_before=start + timedelta(seconds=61)) == [late, early]
    assert await listed(queue, created_by="ann") == [early]


async def test_pages_follow_each_other_without_gap_or_repeat(queue: Queue) -> None:
    for n in range(23):
        await queue.enqueue("even" if n % 2 == 0 else "odd")
    for filters in ({}, {"kinds": ["even"]}, {"statuses": ["queued"]}, {"statuses": ["queued"], "kinds": ["odd"]}):
        whole = await listed(queue, **filters)
        seen: list[str] = []
        cursor = None
        for _ in range(20):
            page = (await queue.rows("list_jobs", limit=4, cursor=cursor, **filters))[0]
            seen += [job["id"] for job in page["jobs"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == whole


async def test_a_rare_kind_behind_many_others_is_found(queue: Queue) -> None:
    rare = await queue.public_id(await queue.enqueue("rare"))
    await queue.rows("enqueue_many", "common", [{}] * 6000)
    assert await listed(queue, kinds=["rare"]) == [rare]


async def test_a_rare_success_behind_many_failures_is_found(queue: Queue) -> None:
    good = await queue.finished()
    await queue.rows("enqueue_many", "work", [{}] * 5100)
    attempts = await queue.claim(5100)
    await queue.rows(
        "finish_attempts", [a.job_id for a in attempts], [a.attempt_id for a in attempts], ["failed_for_good"] * 5100
    )
    assert await listed(queue, statuses=["succeeded"]) == [await queue.public_id(good)]


async def test_a_job_of_another_tenant_is_not_there(queue: Queue) -> None:
    job = await queue.enqueue(tenant="a")
    assert (await queue.call("get_job", job, "a"))["tenant"] == "a"
    assert await queue.call("get_job", job, "b") is None
