"""Running a finished job again, as a new one."""

import asyncpg
import pytest
from tests.sql import sessions
from tests.sql.queue import Queue


async def test_a_retry_is_a_new_job_with_the_same_facts_linked_to_the_old_one(queue: Queue) -> None:
    options = {
        "priority": 4,
        "max_attempts": 7,
        "tenant": "acme",
        "labels": {"a": "b"},
        "timeout": 5.0,
        "lane": "system",
        "snapshot": {"x": None, "y": [1]},
        "identity": "me",
        "retry": {"backoff": "fixed"},
        "key": "k",
        "key_limit": 2,
    }
    old = await queue.enqueue("work", {"n": 1}, **options)
    await queue.run(old, "failed_for_good", lane="system")
    made = (await queue.rows("retry_job", old, "ann"))[0]
    assert made["id"] == await queue.public_id(made["job_id"])
    columns = """kind, args::text, priority, max_attempts, tenant, labels, timeout_seconds, lane, snapshot,
                 snapshot_hash, identity, retry, key, key_limit"""
    rows = [
        tuple((await queue.connection.fetch(f"select {columns} from fenceline.job where id = $1", job))[0])
        for job in (old, made["job_id"])
    ]
    assert rows[0] == rows[1]
    job = await queue.job(made["job_id"])
    assert (job["retry_of"], job["created_by"], job["attempt"]) == (await queue.public_id(old), "ann", 0)
    assert await queue.status(old) == "failed"
    event = (await queue.events(job["retry_of"]))[0]
    assert (event["action"], event["actor"], event["tenant"]) == ("job.retry", "ann", "acme")
    assert (event["before"], event["after"]) == ({"status": "failed"}, {"job": made["id"]})


@pytest.mark.parametrize("outcome", ["succeeded", "succeeded_with_errors", "failed_for_good", "cancelled"])
async def test_every_end_can_be_retried(queue: Queue, outcome: str) -> None:
    old = await queue.finished(outcome=outcome)
    assert await queue.status((await queue.rows("retry_job", old))[0]["job_id"]) == "queued"


async def test_a_retry_takes_the_resource_lock_again(queue: Queue) -> None:
    old = await queue.finished(resource_lock="table")
    await queue.enqueue(resource_lock="table")
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.rows("retry_job", old)
    assert error.value.sqlstate == "FL013"


async def test_nobody_goes_round_an_approval_by_a_retry(queue: Queue) -> None:
    job = await queue.enqueue(needs_approval=True)
    await queue.call("reject_job", job)
    assert await queue.status((await queue.rows("retry_job", job))[0]["job_id"]) == "awaiting_approval"


async def test_a_retry_does_not_wait_for_times_or_dedupe_keys_again(queue: Queue) -> None:
    old = await queue.enqueue(run_at=await queue.at(60), dedupe_key="d", expires_at=await queue.at(90))
    await queue.call("cancel_job", old)
    assert await queue.status((await queue.rows("retry_job", old))[0]["job_id"]) == "queued"


async def test_a_retry_whose_lane_is_gone_goes_where_a_new_job_of_its_kind_would(queue: Queue) -> None:
    await queue.set_lane("night")
    old = await queue.finished(lane="night")
    await queue.call("delete_lane", "night")
    assert (await queue.job(await retry(queue, old)))["lane"] == "default"


async def own_job(queue: Queue, kind: str) -> int:
    """A finished job of one of Fenceline's own kinds."""
    make = "select (fenceline.insert_jobs($1, array['{}'::json], null, 'hook:1', null, 'child')).job_ids[1]"
    job_id = int(await queue.sql(make, kind))
    await queue.call("cancel_job", job_id)
    return job_id


async def test_a_delivery_of_a_webhook_can_be_made_again_and_no_other_job_of_ours(queue: Queue) -> None:
    delivery, rekey = await own_job(queue, "fenceline.webhook"), await own_job(queue, "fenceline.rekey")
    assert (await queue.job(await retry(queue, delivery)))["kind"] == "fenceline.webhook"
    assert await sessions.refusal(queue.rows("retry_job", rekey)) == "FL002"


async def test_what_one_job_is_refused_for_does_not_stop_a_bulk_retry(queue: Queue) -> None:
    large = await queue.finished(args={"text": "x" * 2000})
    await queue.sql("update fenceline.setting set max_args_bytes = 1000")
    jobs = [await own_job(queue, "fenceline.rekey"), large, await queue.finished()]
    [done] = await queue.rows("bulk_jobs", "retry", "ann", None, None, None, False, None, False, jobs)
    assert (done["matched"], done["changed"], done["refused"]) == (3, 1, {"FL002": 1, "FL005": 1})


# What it waited for -----------------------------------------------------------------------------------------


async def retry(queue: Queue, job_id: int) -> int:
    return int((await queue.rows("retry_job", job_id))[0]["job_id"])


async def refusal(queue: Queue, job_id: int) -> tuple[str, str]:
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.rows("retry_job", job_id)
    return str(error.value.sqlstate), str(error.value)


async def waited_for(queue: Queue, job_id: int) -> tuple[list[int], str]:
    [row] = await queue.connection.fetch("select after, after_policy from fenceline.job where id = $1", job_id)
    return row["after"], row["after_policy"]


async def results_of_parents(queue: Queue, job_id: int) -> list[object]:
    return [parent["result"] for parent in (await queue.call("attempt_start", job_id))["parents"]]


async def test_a_retried_fan_in_sees_what_its_hundred_children_gave(queue: Queue) -> None:
    children = await queue.call("enqueue_many", "part", [{"n": n} for n in range(100)], {"group": "g"})
    fan_in = await queue.enqueue("sum", after={"group": "g"})
    for attempt in await queue.claim(100):
        await queue.finish(attempt, result=attempt.args["n"])
    await queue.run(fan_in, "failed_for_good")
    again = await retry(queue, fan_in)
    assert await waited_for(queue, again) == (children, "success")
    assert await queue.status(again) == "queued"
    assert await results_of_parents(queue, again) == list(range(100))
    assert (await queue.claim_one()).more["after"] == children  # type: ignore[index]  # it has some


async def test_a_load_and_its_publish_that_are_retried_keep_their_order(queue: Queue) -> None:
    load = await queue.enqueue("load")
    publish = await queue.enqueue("publish", after=[load])
    await queue.run(load, "failed_for_good")
    assert await queue.status(publish) == "cancelled"
    new_load = await retry(queue, load)
    new_publish = await retry(queue, publish)
    assert await waited_for(queue, new_publish) == ([new_load], "success")
    assert await queue.status(new_publish) == "waiting:dependencies"
    assert await queue.claimed_ids(9) == [new_load]


async def test_a_retry_of_a_retry_is_what_counts(queue: Queue) -> None:
    load = await queue.enqueue("load")
    publish = await queue.enqueue("publish", after=[load])
    await queue.run(load, "failed_for_good")
    second = await retry(queue, load)
    await queue.run(second, "failed_for_good")
    assert (await refusal(queue, publish))[0] == "FL011"
    third = await retry(queue, second)
    await queue.run(third, result={"rows": 3})
    assert await results_of_parents(queue, await retry(queue, publish)) == [{"rows": 3}]


async def test_a_retry_after_success_only_is_refused_while_its_parent_has_failed(queue: Queue) -> None:
    load = await queue.enqueue("load")
    publish = await queue.enqueue("publish", after=[load])
    await queue.run(load, "failed_for_good")
    before = await queue.contents()
    state, message = await refusal(queue, publish)
    assert state == "FL011"
    assert f"job {await queue.public_id(load)}, which it waits for, is failed. Retry that one first" in message
    assert await queue.contents() == before


async def test_a_retry_that_runs_always_sees_how_its_parents_failed(queue: Queue) -> None:
    load = await queue.enqueue("load")
    report = await queue.enqueue("report", after={"jobs": [load], "policy": "always"})
    await queue.run(load, "failed_for_good")
    await queue.run(report, "failed_for_good")
    again = await retry(queue, report)
    assert await waited_for(queue, again) == ([load], "always")
    assert [parent["status"] for parent in (await queue.call("attempt_start", again))["parents"]] == ["failed"]
    # A parent that is being retried is waited for.
    new_load = await retry(queue, load)
    await queue.call("cancel_job", again)
    third = await retry(queue, again)
    assert await queue.status(third) == "waiting:dependencies"
    assert await waited_for(queue, third) == ([new_load], "always")


async def test_a_retry_is_refused_when_what_it_read_from_is_no_longer_kept(queue: Queue) -> None:
    load, other = await queue.finished(), await queue.finished()
    publish = await queue.enqueue("publish", after=[load, other])
    await queue.run(publish, "failed_for_good")
    await queue.call("delete_job", load)
    state, message = await refusal(queue, publish)
    assert state == "FL008"
    assert f"job {await queue.public_id(load)}, which it waited for, is no longer kept" in message


async def test_a_retry_takes_the_place_of_its_job_in_the_group(queue: Queue) -> None:
    good, bad = await queue.enqueue(group="g"), await queue.enqueue(group="g")
    await queue.run(good)
    await queue.run(bad, "failed_for_good")
    new = await retry(queue, bad)
    waiter = await queue.enqueue(after={"group": "g"})
    assert await waited_for(queue, waiter) == ([good, new], "success")
    assert await queue.status(waiter) == "waiting:dependencies"


async def bulk_retry(queue: Queue, job_ids: list[int], *, dry_run: bool = False) -> tuple[int, int]:
    [row] = await queue.rows("bulk_jobs", "retry", "ann", None, None, None, False, None, dry_run, job_ids)
    return row["matched"], row["changed"]


async def test_a_bulk_retry_of_a_workflow_keeps_its_order(queue: Queue) -> None:
    load = await queue.enqueue("load")
    clean = await queue.enqueue("clean", after=[load])
    publish = await queue.enqueue("publish", after=[clean, load])
    await queue.run(load, "failed_for_good")
    await queue.call("cancel_job", await retry(queue, load))
    old_load = await queue.sql("select max(id) from fenceline.job")
    # The newest retry of load is younger than what waits for it.
    for job_ids in ([publish, clean, old_load], [old_load, publish, clean]):
        assert await bulk_retry(queue, job_ids, dry_run=True) == (3, 3)
    assert await bulk_retry(queue, [publish, clean, old_load]) == (3, 3)
    rows = await queue.connection.fetch("select kind, id, after from fenceline.job where id > $1 order by id", old_load)
    assert [row["kind"] for row in rows] == ["load", "clean", "publish"]
    new_load, new_clean, new_publish = (row["id"] for row in rows)
    assert [row["after"] for row in rows] == [None, [new_load], [new_load, new_clean]]
    assert await queue.statuses([new_load, new_clean, new_publish]) == [
        "queued", "waiting:dependencies", "waiting:dependencies",
    ]  # fmt: skip
    for job in (new_load, new_clean, new_publish):
        await queue.run(job)


async def test_a_bulk_retry_goes_on_past_jobs_that_it_cannot_retry(queue: Queue) -> None:
    erased, lonely, good = [await queue.finished(outcome="failed_for_good") for _ in range(3)]
    await queue.call("erase_args", erased)
    orphan = await queue.enqueue("orphan", after={"jobs": [lonely], "policy": "always"})
    await queue.run(orphan, "failed_for_good")
    await queue.call("delete_job", lonely)
    assert await bulk_retry(queue, [erased, orphan, good]) == (3, 1)
