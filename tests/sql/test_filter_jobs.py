"""Filters that fewer ask for: who enqueued a job, which job made it, its group, key, worker, phase and error."""

from typing import Any

from tests.sql.queue import Attempt, Json, Queue


async def found(queue: Queue, more: Json | None = None, **filters: Any) -> list[int]:
    """Internal ids, over as many pages as it takes."""
    ids: list[int] = []
    cursor: int | None = None
    while True:
        row = (await queue.rows("page_jobs", **filters, cursor=cursor, more=more, limit=2))[0]
        ids += [await queue.call("parse_public_id", job) for job in await names(queue, row["jobs"])]
        cursor = row["next_cursor"]
        if cursor is None:
            return ids


async def names(queue: Queue, page: str) -> list[str]:
    rows = await queue.connection.fetch("select j ->> 'id' as id from json_array_elements($1::text::json) j", page)
    return [row["id"] for row in rows]


async def make_children(queue: Queue, attempt: Attempt, *kinds: str, **options: Any) -> list[int]:
    made: list[int] = []
    for kind in kinds:
        made += await queue.call("add_children", attempt.job_id, attempt.attempt_id, kind, [{}], options)
    return made


async def test_children_of_a_job_plain_and_gated(queue: Queue) -> None:
    parent = await queue.enqueue()
    attempt = await queue.claim_one()
    plain = await make_children(queue, attempt, "a", "b", "c")
    gated = await make_children(queue, attempt, "d", needs_approval=True)
    await queue.finish(attempt)
    other = await queue.enqueue("e")
    await queue.finish(await queue.claim_one(kinds=["a"]))
    by_parent: Json = {"parent": parent}
    assert await found(queue, by_parent) == [*gated, *reversed(plain)]
    assert await found(queue, by_parent, kinds=["b", "d"]) == [gated[0], plain[1]]
    assert await found(queue, by_parent, statuses=["queued"]) == [plain[2], plain[1]]
    assert await found(queue, by_parent, statuses=["succeeded"]) == [plain[0]]
    assert await found(queue, by_parent, tenants=["other"]) == []
    assert await found(queue, {"parent": other}) == []


async def test_a_child_that_is_run_again_is_a_child_too(queue: Queue) -> None:
    parent = await queue.enqueue()
    attempt = await queue.claim_one()
    (child,) = await make_children(queue, attempt, "a")
    await queue.finish(attempt)
    await queue.finish(await queue.claim_one(), "failed_for_good")
    again = (await queue.rows("retry_job", child))[0]["job_id"]
    assert await found(queue, {"parent": parent}) == [again, child]


async def test_the_list_of_children_goes_with_the_parent(queue: Queue) -> None:
    parent = await queue.enqueue()
    attempt = await queue.claim_one()
    (child,) = await make_children(queue, attempt, "a")
    await queue.finish(attempt)
    await queue.finish(await queue.claim_one(), "failed_for_good")
    await queue.call("delete_job", parent)
    assert await queue.sql("select count(*) from fenceline.offspring") == 0
    await queue.rows("retry_job", child)  # names a parent that is gone
    assert await queue.sql("select count(*) from fenceline.offspring") == 0


async def test_by_who_enqueued_group_and_key(queue: Queue) -> None:
    mine = (await queue.rows("enqueue", "a", {}, {}, "ann"))[0]["job_id"]
    grouped = await queue.enqueue("b", group="nightly")
    foreign = await queue.enqueue("b", group="nightly", tenant="acme")
    keyed = [await queue.enqueue("c", key="acct:7") for _ in range(3)]
    assert await found(queue, created_by="ann") == [mine]
    assert await found(queue, {"group": "nightly"}) == [foreign, grouped]
    assert await found(queue, {"group": "nightly"}, tenants=["default"]) == [grouped]
    assert await found(queue, {"key": "acct:7"}) == keyed[::-1]
    assert await found(queue, {"key": "acct:7"}, statuses=["waiting"]) == keyed[::-1]
    assert await found(queue, {"key": "acct:7", "group": "nightly"}) == []


async def test_by_worker_and_phase(queue: Queue) -> None:
    done = await queue.finished()
    other = await queue.register("other")
    held = await queue.enqueue()
    attempt = await queue.claim_one(worker=other)
    await queue.call("set_progress", held, attempt.attempt_id, "load")
    await queue.enqueue()
    assert await found(queue, {"worker": "worker"}) == [done]
    assert await found(queue, {"worker": "other"}) == [held]
    assert await found(queue, {"worker": "other"}, statuses=["succeeded"]) == []
    assert await found(queue, {"phase": "load"}) == [held]
    assert await found(queue, {"phase": "load", "worker": "worker"}) == []
    assert await found(queue, {"worker": "nobody"}) == []


async def test_by_a_text_in_the_error(queue: Queue) -> None:
    await queue.finished()
    errors: list[Json] = [{"type": "BankDown", "message": "no answer"}, {"code": "quarantined"}, {"message": "Bank 3"}]
    failed = []
    for error in errors:
        failed.append(await queue.enqueue("a", max_attempts=1))
        await queue.finish(await queue.claim_one(), "failed", error=error)
    gone = await queue.enqueue("b")
    await queue.call("cancel_job", gone, reason="the bank closed")
    again = await queue.enqueue("b", max_attempts=2)
    await queue.finish(await queue.claim_one(), "failed", error={"message": "bank: will be tried again"}, delay=0)
    assert await found(queue, {"error": "bANK"}) == [gone, failed[2], failed[0]]
    assert await found(queue, {"error": "bank"}, kinds=["b"]) == [gone]
    assert await found(queue, {"error": "quarantine"}) == [failed[1]]
    assert await found(queue, {"error": "bank"}, statuses=["failed", "queued"]) == [failed[2], failed[0]]
    assert await found(queue, {"error": "bank"}, statuses=["queued", "succeeded"]) == []
    assert await queue.status(again) == "queued"
