"""One job at a time: what it becomes, where it goes, and when an enqueue finds a job instead of making one."""

import re
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests.conftest import Connect
from tests.sql.queue import Queue
from tests.support.patience import eventually

DAY = 86400


async def test_only_a_kind_is_needed(queue: Queue) -> None:
    made = (await queue.rows("enqueue", "work"))[0]
    job = await queue.job(made["job_id"])
    assert made["created"] is True
    assert job["id"] == await queue.public_id(made["job_id"])
    expected: dict[str, Any] = {
        "kind": "work",
        "status": "queued",
        "waiting_for": None,
        "lane": "default",
        "priority": 0,
        "tenant": "default",
        "args": {},
        "labels": None,
        "attempt": 0,
        "max_attempts": 3,
        "created_by": None,
        "run_at": None,
        "delivery": "postgres",
        "result": None,
        "error": None,
    }
    assert {name: job[name] for name in expected} == expected


async def test_every_option_is_kept(queue: Queue) -> None:
    parent = await queue.enqueue()
    options: dict[str, Any] = {
        "lane": "system",
        "priority": 7,
        "run_at": await queue.at(60),
        "expires_at": await queue.at(120),
        "dedupe_key": "d",
        "idempotency_key": "i",
        "max_attempts": 5,
        "labels": {"project": "x"},
        "resource_lock": "r",
        "key": "k",
        "key_limit": 2,
        "needs_approval": True,
        "snapshot": {"a": None},
        "requires_hash": "h",
        "after": [parent],
        "identity": "deployer",
        "tenant": "default",
        "timeout": 2.5,
        "retry": {"backoff": "fixed"},
        "group": "g",
        "parent": await queue.public_id(parent),
    }
    job = (await queue.rows("enqueue", "work", {"n": 1}, options, "ann"))[0]["job_id"]
    row = await queue.connection.fetchrow("select * from fenceline.job where id = $1", job)
    assert row is not None
    assert (row["lane"], row["priority"], row["max_attempts"], row["timeout_seconds"]) == ("system", 7, 5, 2.5)
    assert (row["dedupe_key"], row["idempotency_key"], row["resource_lock"]) == ("d", "i", "r")
    assert (row["key"], row["key_limit"], row["needs_approval"]) == ("k", 2, True)
    assert (row["labels"], row["identity"], row["group_name"]) == ({"project": "x"}, "deployer", "g")
    assert (row["snapshot"], row["retry"], row["created_by"]) == ({"a": None}, {"backoff": "fixed"}, "ann")
    assert (row["requires_hash"], row["after"], row["parent"]) == ("h", [parent], parent)
    assert (row["args"], row["expires_at"] > row["run_at"]) == ({"n": 1}, True)


async def test_run_in_is_counted_by_the_clock_of_the_database(queue: Queue) -> None:
    later, now = await queue.enqueue(run_in=90.5), await queue.enqueue(run_in=0)
    wait = "select run_at - fenceline.id_time(id) from fenceline.job where id = $1"
    assert [await queue.status(job) for job in (later, now)] == ["scheduled", "queued"]
    assert timedelta(seconds=89) < await queue.sql(wait, later) < timedelta(seconds=92)


async def test_the_same_request_with_run_in_is_sent_again(queue: Queue) -> None:
    first = await queue.rows("enqueue", "work", {}, {"run_in": 60, "idempotency_key": "once"})
    again = await queue.rows("enqueue", "work", {}, {"run_in": 60, "idempotency_key": "once"})
    assert (again[0]["job_id"], again[0]["created"]) == (first[0]["job_id"], False)


async def test_null_means_left_out(queue: Queue) -> None:
    job = await queue.enqueue(priority=None, lane=None, key=None, labels=None, snapshot=None, after=None, retry=None)
    assert await queue.status(job) == "queued"
    assert await queue.sql("select snapshot_hash from fenceline.job where id = $1", job) is None


async def test_args_are_kept_as_they_were_sent(queue: Queue) -> None:
    sent = '{"b": 1.50, "a":  1, "text": "\\u00e9"}'
    job = await queue.sql("select job_id from fenceline.enqueue('work', $1::text::json)", sent)
    assert await queue.sql("select args::text from fenceline.job where id = $1", job) == sent


async def test_enqueue_belongs_to_the_callers_transaction(queue: Queue) -> None:
    transaction = queue.connection.transaction()
    await transaction.start()
    await queue.enqueue()
    await transaction.rollback()
    assert await queue.sql("select count(*) from fenceline.jobs") == 0


# Gates ------------------------------------------------------------------------------------------------------------


async def test_gates_are_met_in_order(queue: Queue) -> None:
    first = await queue.enqueue()
    holder = await queue.enqueue(key="k")
    await queue.maintain()
    job = await queue.enqueue(needs_approval=True, after=[first], run_at=await queue.at(60), key="k")
    assert await queue.status(job) == "awaiting_approval"
    await queue.call("approve_job", job)
    assert await queue.status(job) == "waiting:dependencies"
    await queue.run(first)
    assert await queue.status(job) == "scheduled"
    await queue.move_clock(61)
    await queue.maintain()
    assert await queue.status(job) == "waiting:key"
    await queue.run(holder)
    await queue.maintain()
    assert await queue.status(job) == "queued"
    assert await queue.claimed_ids() == [job]


async def test_dependencies_may_end_before_the_approval(queue: Queue) -> None:
    first = await queue.enqueue()
    job = await queue.enqueue(needs_approval=True, after=[first])
    await queue.run(first)
    assert await queue.status(job) == "awaiting_approval"
    assert await queue.call("approve_job", job) == "queued"


async def test_run_at_in_the_past_is_no_gate(queue: Queue) -> None:
    assert await queue.status(await queue.enqueue(run_at=await queue.at(-5))) == "queued"


async def test_an_empty_list_of_dependencies_is_no_gate(queue: Queue) -> None:
    assert await queue.status(await queue.enqueue(after=[])) == "queued"


# Lanes and priorities ---------------------------------------------------------------------------------------------


async def lane_of(queue: Queue, kind: str, defaults: dict[str, Any] | None = None, **options: Any) -> str:
    job = (await queue.rows("enqueue", kind, {}, options, None, defaults))[0]["job_id"]
    return str((await queue.job(job))["lane"])


async def test_the_lane_is_the_explicit_then_the_listed_then_the_decorators_then_default(queue: Queue) -> None:
    await queue.set_lane("listed", kinds=["work"])
    assert await lane_of(queue, "work", {"lane": "decorated"}, lane="system") == "system"
    assert await lane_of(queue, "work", {"lane": "decorated"}) == "listed"
    assert await lane_of(queue, "other", {"lane": "decorated"}) == "decorated"
    assert await lane_of(queue, "other") == "default"


async def test_what_a_worker_declared_counts_where_the_handlers_code_is_not_known(queue: Queue) -> None:
    await queue.call("declare_kinds", {"work": {"lane": "heavy", "priority": 4, "max_attempts": 9, "timeout": 3}})
    job = await queue.job(await queue.enqueue())
    assert (job["lane"], job["priority"], job["max_attempts"]) == ("heavy", 4, 9)
    assert await lane_of(queue, "work", {"lane": "newer"}) == "newer"


async def test_a_decorators_lane_is_created_on_first_use_and_again_after_it_was_deleted(queue: Queue) -> None:
    await queue.call("declare_kinds", {"work": {"lane": "heavy"}})
    await queue.call("delete_lane", "heavy")
    assert await lane_of(queue, "work") == "heavy"


async def test_the_priority_is_the_options_then_the_decorators_then_the_kinds_then_the_lanes(queue: Queue) -> None:
    await queue.set_lane("interactive", kinds=["work"])

    async def priority(defaults: dict[str, Any] | None, **options: Any) -> int:
        job = (await queue.rows("enqueue", "work", {}, options, None, defaults))[0]["job_id"]
        return int((await queue.job(job))["priority"])

    assert await priority(None) == 10
    await queue.call("declare_kinds", {"work": {"priority": 4}})
    assert await priority(None) == 4
    assert await priority({"priority": 5}) == 5
    assert await priority({"priority": 5}, priority=-3) == -3


async def test_other_defaults_of_the_decorator(queue: Queue) -> None:
    defaults = {"max_attempts": 9, "timeout": 1.5, "retry": {"backoff": "fixed", "base": 1}}
    job = (await queue.rows("enqueue", "work", {}, {}, None, defaults))[0]["job_id"]
    row = await queue.connection.fetchrow("select * from fenceline.job where id = $1", job)
    assert row is not None
    assert (row["max_attempts"], row["timeout_seconds"], row["retry"]) == (9, 1.5, defaults["retry"])


# Dedupe -----------------------------------------------------------------------------------------------------------


async def test_a_dedupe_key_finds_the_job_until_it_is_claimed(queue: Queue) -> None:
    first = await queue.made(dedupe_key="k")
    again = await queue.made("other", {"n": 2}, dedupe_key="k")
    assert (again["job_id"], again["created"]) == (first["job_id"], False)
    await queue.claim_one()
    after_claim = await queue.made(dedupe_key="k")
    assert after_claim["created"] is True


async def test_a_dedupe_key_finds_a_scheduled_and_a_held_job_too(queue: Queue) -> None:
    scheduled = await queue.enqueue(dedupe_key="s", run_at=await queue.at(60))
    held = await queue.enqueue(dedupe_key="h", needs_approval=True)
    assert await queue.enqueue(dedupe_key="s") == scheduled
    assert await queue.enqueue(dedupe_key="h") == held


async def test_a_dedupe_key_is_free_after_a_cancel(queue: Queue) -> None:
    cancelled = await queue.enqueue(dedupe_key="k")
    await queue.call("cancel_job", cancelled)
    assert (await queue.made(dedupe_key="k"))["created"] is True


async def test_a_job_that_waits_for_its_retry_has_its_dedupe_key_again(queue: Queue) -> None:
    job = await queue.enqueue(dedupe_key="k")
    for outcome, status in (("failed", "scheduled"), ("snoozed", "scheduled"), ("released", "queued")):
        await queue.run(job, outcome, delay=5)
        assert await queue.status(job) == status
        again = await queue.made(dedupe_key="k")
        assert (again["job_id"], again["created"]) == (job, False)
        await queue.move_clock(5)
        await queue.maintain()


async def test_a_dedupe_key_stays_with_who_took_it_meanwhile(queue: Queue) -> None:
    job = await queue.enqueue(dedupe_key="k")
    attempt = await queue.claim_one()
    other = await queue.enqueue(dedupe_key="k", run_at=await queue.at(60))
    await queue.finish(attempt, "failed", delay=5)
    assert await queue.enqueue(dedupe_key="k") == other != job
    assert await queue.sql("select array_agg(earlier) from fenceline.dedupe") == [[job]]
    await queue.move_clock(5)
    await queue.maintain()
    await queue.run(job)
    assert await queue.sql("select earlier from fenceline.dedupe where job_id = $1", other) is None


@pytest.mark.parametrize("outcome", ["succeeded", "failed_for_good", "cancelled"])
async def test_a_dedupe_key_can_be_held_until_the_job_has_finished(queue: Queue, outcome: str) -> None:
    job = await queue.enqueue(dedupe_key="k", dedupe_until="finished")
    attempt = await queue.claim_one()
    # It is the job's word that counts, not that of who asks.
    assert await queue.enqueue(dedupe_key="k", dedupe_until="claimed") == job
    assert await queue.enqueue(dedupe_key="k") == job
    await queue.finish(attempt, outcome)
    made = await queue.made(dedupe_key="k", dedupe_until="claimed")
    assert made["created"] is True
    assert await queue.sql("select dedupe_until from fenceline.job where id = $1", made["job_id"]) is None


async def test_an_answer_is_guarded_until_the_commit_unless_the_call_commits_itself(
    queue: Queue, connect: Connect
) -> None:
    job = await queue.enqueue(dedupe_key="k")
    claim = await connect()
    unlocked = "select count(*) from (select from fenceline.dedupe where key = 'k' for update skip locked) d"
    for autocommit, guarded in ((True, False), (False, True)):
        async with queue.connection.transaction():
            assert await queue.enqueue(dedupe_key="k", autocommit=autocommit) == job
            assert await claim.fetchval(unlocked) == (0 if guarded else 1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dedupe_key": "k", "autocommit": "yes"}, 'autocommit "yes" is not a boolean'),
        ({"dedupe_key": "k", "dedupe_until": "ended"}, 'dedupe_until "ended" is unknown: use "claimed" or "finished"'),
        ({"dedupe_key": "k", "dedupe_until": 1}, "dedupe_until 1 is unknown"),
        ({"dedupe_until": "finished"}, "dedupe_until is given without a dedupe_key"),
    ],
)
async def test_a_bad_dedupe_until_is_refused(queue: Queue, options: dict[str, Any], message: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match=re.escape(message)) as error:
        await queue.enqueue(**options)
    assert error.value.sqlstate == "FL007"


async def test_dedupe_keys_are_per_tenant(queue: Queue) -> None:
    assert await queue.enqueue(dedupe_key="k", tenant="a") != await queue.enqueue(dedupe_key="k", tenant="b")


# Idempotency ------------------------------------------------------------------------------------------------------


async def test_an_idempotency_key_finds_the_first_job_for_a_day_whatever_became_of_it(queue: Queue) -> None:
    job = await queue.enqueue(idempotency_key="i")
    await queue.run(job)
    await queue.move_clock(DAY - 1)
    again = await queue.made(idempotency_key="i")
    assert (again["job_id"], again["created"]) == (job, False)
    await queue.move_clock(1)
    assert (await queue.made(idempotency_key="i"))["created"] is True


async def test_idempotency_keys_are_per_tenant(queue: Queue) -> None:
    assert await queue.enqueue(idempotency_key="i", tenant="a") != await queue.enqueue(idempotency_key="i", tenant="b")


async def test_a_repeat_finds_the_job_that_the_first_request_was_deduplicated_to(queue: Queue) -> None:
    job = await queue.enqueue(dedupe_key="k")
    assert await queue.enqueue(dedupe_key="k", idempotency_key="i") == job
    await queue.run(job)
    assert await queue.enqueue(dedupe_key="k", idempotency_key="i") == job


# Resource locks ---------------------------------------------------------------------------------------------------


async def test_a_resource_lock_belongs_to_the_job_from_enqueue_to_its_end(queue: Queue) -> None:
    holder = await queue.enqueue(resource_lock="table")

    async def refused() -> bool:
        with pytest.raises(asyncpg.PostgresError) as error:
            await queue.enqueue(resource_lock="table")
        assert error.value.sqlstate == "FL013"
        assert str(error.value).startswith("resource 'table' is locked by job ")
        assert error.value.detail == await queue.public_id(holder)
        return True

    assert await refused()
    attempt = await queue.claim_one()
    assert await refused()
    await queue.finish(attempt, "failed", delay=0)
    assert await queue.status(holder) == "queued"
    assert await refused()
    await queue.run(holder)
    assert await queue.status(await queue.enqueue(resource_lock="table")) == "queued"


async def test_resource_locks_are_per_tenant(queue: Queue) -> None:
    await queue.enqueue(resource_lock="table", tenant="a")
    await queue.enqueue(resource_lock="table", tenant="b")


@pytest.mark.parametrize("end", ["cancel_job", "reject_job"])
async def test_a_job_that_ends_unclaimed_frees_its_lock(queue: Queue, end: str) -> None:
    job = await queue.enqueue(resource_lock="table", needs_approval=True)
    await queue.call(end, job)
    await queue.enqueue(resource_lock="table")


# Dependencies -----------------------------------------------------------------------------------------------------


async def test_a_job_waits_for_all_its_dependencies(queue: Queue) -> None:
    first, second = await queue.enqueue(), await queue.enqueue()
    job = await queue.enqueue(after=[first, await queue.public_id(second), first])
    await queue.run(first)
    assert await queue.status(job) == "waiting:dependencies"
    await queue.run(second, "succeeded_with_errors")
    assert await queue.status(job) == "queued"


async def test_dependencies_that_ended_before_the_enqueue_are_met(queue: Queue) -> None:
    first = await queue.finished()
    assert await queue.status(await queue.enqueue(after=first)) == "queued"


async def test_a_job_whose_dependency_has_failed_never_runs(queue: Queue) -> None:
    failed = await queue.finished(outcome="failed_for_good")
    job = await queue.enqueue(after=[failed], resource_lock="table")
    assert await queue.status(job) == "cancelled"
    error = (await queue.job(job))["error"]
    assert (error["code"], error["job"]) == ("dependency_failed", await queue.public_id(failed))
    assert await queue.sql("select count(*) from fenceline.resource_lock") == 0


async def test_the_policy_always_runs_after_a_failure_too(queue: Queue) -> None:
    failed = await queue.finished(outcome="failed_for_good")
    other = await queue.enqueue()
    job = await queue.enqueue(after={"jobs": [failed, other], "policy": "always"})
    assert await queue.status(job) == "waiting:dependencies"
    await queue.call("cancel_job", other)
    assert await queue.status(job) == "queued"


async def test_a_group_stands_for_the_jobs_in_it(queue: Queue) -> None:
    members = [await queue.enqueue(group="g") for _ in range(3)]
    await queue.enqueue(group="g", tenant="other")
    job = await queue.enqueue(after={"group": "g"})
    later = await queue.enqueue(group="g")
    for member in members:
        assert await queue.status(job) == "waiting:dependencies"
        await queue.run(member)
    assert await queue.status(job) == "queued"
    assert await queue.status(later) == "queued"


async def test_a_failure_travels_down_a_long_chain(queue: Queue) -> None:
    length = 2000
    first = await queue.enqueue(lane="system")
    last = await queue.sql(
        """
        with recursive chain(id, n) as (
          select $1::bigint, 0
          union all
          select (fenceline.enqueue('work', '{}', json_build_object('after', json_build_array(id)))).job_id, n + 1
          from chain where n < $2)
        select id from chain order by n desc limit 1
        """,
        first,
        length,
    )
    await queue.run(first, "failed_for_good", lane="system")
    assert await queue.status(last) == "cancelled"
    assert await queue.sql("select count(*) from fenceline.history where final and outcome = 'cancelled'") == length
    assert await queue.sql("select count(*) from fenceline.held") == 0


async def test_a_dependency_that_ends_while_the_enqueue_is_open_is_seen_by_the_resolver(
    queue: Queue, connect: Connect
) -> None:
    first = await queue.enqueue()
    other = await connect()
    async with other.transaction():
        job = await other.fetchval(
            "select job_id from fenceline.enqueue('work', '{}', json_build_object('after', $1::bigint))", first
        )
        await queue.run(first)
    assert await queue.status(job) == "waiting:dependencies"
    await queue.maintain()
    assert await queue.status(job) == "queued"

    # The last look comes when every transaction of the cluster that was open at the first has ended.
    async def looked_at_for_the_last_time() -> bool:
        await queue.maintain()
        return bool(await queue.sql("select count(*) = 0 from fenceline.dependency_check"))

    await eventually(looked_at_for_the_last_time, "the last look at the new waiter")


# Wake-ups ---------------------------------------------------------------------------------------------------------


async def test_one_notification_per_transaction_and_only_when_a_worker_waits(queue: Queue, connect: Connect) -> None:
    heard: list[Any] = []
    listener = await connect()
    await listener.add_listener("fenceline_ready", lambda *said: heard.append(said[3]))

    async def enqueue_three() -> list[Any]:
        heard.clear()
        async with queue.connection.transaction():
            await queue.enqueue()
            await queue.enqueue(priority=3)
            await queue.enqueue(key="k")
        await listener.execute("select 1")
        return list(heard)

    assert await enqueue_three() == []
    await queue.claim(10)
    assert await queue.claim(1, wait_seconds=30) == []
    assert await enqueue_three() == ["default"]
    # Waiting ends with a successful claim, or by itself.
    await queue.claim(10)
    assert await enqueue_three() == []
    await queue.claim(10)
    await queue.claim(1, wait_seconds=30)
    await queue.move_clock(31)
    assert await enqueue_three() == []
