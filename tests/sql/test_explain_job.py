"""Why a job is where it is: one answer for every state, and nothing of what the reader may not see."""

import re
from datetime import datetime
from typing import Any

import asyncpg
import pytest
from tests.sql.queue import Json, Queue


async def explain(queue: Queue, job: int, **who: Any) -> Json:
    """What is said, after checking that the form is right and that it may be typed."""
    told: Json = await queue.call("explain_job", job, **who)
    for reason in (told, *told["also"]):
        assert reason["text"].endswith("."), reason
        assert "%" not in reason["text"]
        for command in reason["commands"]:
            assert re.match(r"fenceline (jobs|lanes|runner|worker|workers|sweep|resume|doctor)\b", command), command
    return told


def codes(told: Json) -> list[str]:
    return [told["code"], *(reason["code"] for reason in told["also"])]


async def test_the_next_in_line(queue: Queue) -> None:
    job = await queue.enqueue()
    told = await explain(queue, job)
    assert (told["id"], told["status"], codes(told)) == (await queue.public_id(job), "queued", ["next"])


async def test_those_before_it(queue: Queue) -> None:
    for _ in range(3):
        await queue.enqueue()
    job = await queue.enqueue()
    await queue.enqueue()
    await queue.enqueue(priority=5)
    told = await explain(queue, job)
    assert (codes(told), told["details"]["ahead"]) == (["behind"], 4)
    assert told["commands"] == [f"fenceline jobs reprioritise {told['id']} --priority 10"]


async def test_a_drained_lane_since_when_and_by_whom(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.call("set_lane", "default", {"enabled": False}, "ann")
    drained_at = await queue.sql("select fenceline.clock()")
    await queue.move_clock(60)
    await queue.call("set_lane", "default", {"slots": 3}, "bob")
    told = await explain(queue, job)
    assert codes(told) == ["lane_drained", "next"]
    assert (told["since"], told["details"]["actor"]) == (drained_at.isoformat(), "ann")
    assert told["commands"] == ["fenceline lanes resume default"]


async def test_a_full_lane_and_who_holds_its_slots(queue: Queue) -> None:
    await queue.set_lane("default", slots=2)
    holders = [await queue.enqueue(), await queue.enqueue()]
    await queue.claim(2)
    job = await queue.enqueue()
    await queue.move_clock(90)
    told = await explain(queue, job)
    assert codes(told) == ["lane_full", "next"]
    ids = [await queue.public_id(holder) for holder in holders]
    assert [holder["id"] for holder in told["details"]["holders"]] == ids
    assert told["text"] == f"All 2 slots of lane default are in use, the first for 1 m 30 s: {ids[0]}, {ids[1]}."
    assert told["commands"] == ["fenceline lanes set default --slots 3", f"fenceline jobs explain {ids[0]}"]
    await queue.set_lane("default", slots=1)
    assert (await explain(queue, job))["text"].startswith("The only slot of lane default is in use, for 1 m 30 s: ")


async def test_a_lane_without_slots_and_one_that_is_gone(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.set_lane("default", slots=0)
    assert codes(await explain(queue, job)) == ["lane_no_slots", "next"]
    await queue.sql("delete from fenceline.lane where name = 'default'")
    assert codes(await explain(queue, job)) == ["lane_missing"]


async def test_a_rate_and_until_when(queue: Queue) -> None:
    await queue.set_lane("default", rate_per_second=0.5, burst=1)
    await queue.finished()
    await queue.enqueue()
    job = await queue.enqueue()
    told = await explain(queue, job)
    assert codes(told) == ["rate_limited", "behind"]
    now = await queue.sql("select fenceline.clock()")
    # Two jobs, at two seconds each.
    assert (datetime.fromisoformat(told["until"]) - now).total_seconds() == pytest.approx(4, abs=0.1)


async def test_no_worker_for_the_lane(queue: Queue) -> None:
    await queue.call("stop_worker", queue.worker)
    await queue.register("elsewhere", lanes=["system"])
    await queue.register("silent", lease_seconds=5)
    job = await queue.enqueue()
    await queue.move_clock(10)
    told = await explain(queue, job)
    assert codes(told) == ["no_worker", "next"]
    assert told["text"] == "No live worker serves lane default (1 live in all, 1 gone silent)."
    assert [(worker["name"], worker["status"]) for worker in told["details"]["workers"]] == [
        ("silent", "lost"),
        ("elsewhere", "live"),
    ]
    assert told["commands"][0] == "fenceline worker APP --lanes default"


async def test_workers_without_the_handler(queue: Queue) -> None:
    await queue.call("stop_worker", queue.worker)
    await queue.register("old", kinds=["other", "more"])
    told = await explain(queue, await queue.enqueue("brand.new"))
    assert codes(told) == ["unknown_kind", "next"]
    assert told["details"]["workers"][0]["kinds"] == ["other", "more"]


async def test_the_one_it_is_meant_for_is_not_there(queue: Queue) -> None:
    told = await explain(queue, await queue.enqueue(runner="gpu-1"))
    assert codes(told) == ["no_addressee", "next"]
    assert "gpu-1" in told["text"]
    labelled = await explain(queue, await queue.enqueue(runner={"zone": "a"}))
    assert labelled["code"] == "no_addressee"
    await queue.register("gpu-1")
    await queue.register("any", labels={"zone": "a", "rack": "7"})
    assert {(await explain(queue, job))["code"] for job in await waiting(queue)} == {"next", "behind"}


async def waiting(queue: Queue) -> list[int]:
    return [row[0] for row in await queue.connection.fetch("select job_id from fenceline.ready order by job_id")]


async def test_every_worker_that_could_is_frozen(queue: Queue) -> None:
    await queue.register("elsewhere", lanes=["system"])
    job = await queue.enqueue()
    await queue.sql("update fenceline.worker set blocked_at = fenceline.clock() where id = $1", queue.worker)
    told = await explain(queue, job)
    assert codes(told) == ["workers_blocked", "next"]
    await queue.register("another")
    assert codes(await explain(queue, job)) == ["next"]


async def test_a_suspect_that_waits_to_run_alone(queue: Queue) -> None:
    for _ in range(2):
        await queue.enqueue()
    attempts = await queue.claim(2)
    await queue.call("report_crash", queue.worker, [attempt.attempt_id for attempt in attempts])
    await queue.register("another")
    await queue.enqueue(priority=9)
    told = await explain(queue, attempts[1].job_id)
    assert (codes(told), told["details"]["ahead"]) == (["alone"], 1)
    assert told["text"] == (
        "Its process crashed, with other jobs in it, and it waits to run in a process of its own; 1 before it do too."
    )
    assert "fenceline worker APP --isolated 4" in told["commands"]


async def test_a_suspect_of_a_runner(queue: Queue) -> None:
    runner = await queue.register("runner", runner=True, owner="o")
    job = await queue.enqueue()
    attempt = await queue.claim_one(worker=runner)
    await queue.call("report_crash", runner, [attempt.attempt_id])
    told = await explain(queue, job)
    assert told["commands"][0] == "fenceline runner APP --isolated 4"


async def test_the_share_of_a_tenant(queue: Queue) -> None:
    await queue.set_lane("default", fair=True)
    for _ in range(3):
        await queue.enqueue(tenant="big")
    job = await queue.enqueue(tenant="big")
    for _ in range(5):
        await queue.enqueue(tenant="other")
    told = await explain(queue, job)
    assert (codes(told), told["details"]["ahead"]) == (["fair_share"], 3)


async def test_approval_since_when_and_who_may(queue: Queue) -> None:
    first = await queue.enqueue()
    made = await queue.rows("enqueue", "work", {}, {"needs_approval": True, "after": [first]}, "ann")
    job = made[0]["job_id"]
    await queue.move_clock(3700)
    told = await explain(queue, job)
    assert codes(told) == ["approval", "dependencies"]
    assert told["text"] == "It has waited 1 h 1 m for approval by someone other than ann, who enqueued it."
    assert told["details"] == {"roles": ["fleet_operator", "operator", "platform_admin"], "not_by": "ann"}
    assert told["commands"] == [f"fenceline jobs {verb} {told['id']}" for verb in ("approve", "reject")]


async def test_dependencies_how_many_are_left_and_the_first(queue: Queue) -> None:
    before = [await queue.enqueue() for _ in range(8)]
    job = await queue.enqueue(after=before)
    await queue.run(before[0])
    told = await explain(queue, job)
    assert (codes(told), told["details"]["left"], told["details"]["of"]) == (["dependencies"], 7, 8)
    assert [row["id"] for row in told["details"]["jobs"]] == [await queue.public_id(one) for one in before[1:6]]
    assert told["text"].startswith("It waits for 7 of the 8 jobs that it comes after: ")
    assert told["text"].endswith(" and 2 more.")
    assert told["commands"] == [f"fenceline jobs explain {await queue.public_id(before[1])}"]


async def test_dependencies_of_which_none_is_on_its_way(queue: Queue) -> None:
    first = await queue.enqueue()
    job = await queue.enqueue(after=[first])
    await queue.sql("delete from fenceline.ready")
    told = await explain(queue, job)
    assert told["text"] == ("It waits for the job that it comes after: none of those looked at is on its way any more.")


async def test_a_key_its_holder_and_its_line(queue: Queue) -> None:
    holder = await queue.enqueue(key="acct:7")
    await queue.maintain()
    await queue.enqueue(key="acct:7")
    job = await queue.enqueue(key="acct:7")
    told = await explain(queue, job)
    assert (codes(told), told["details"]["ahead"]) == (["key"], 1)
    assert told["details"]["holders"] == [{"id": await queue.public_id(holder), "status": "queued"}]
    assert told["commands"] == [f"fenceline jobs explain {await queue.public_id(holder)}"]


async def test_timers_ahead_overdue_retried_and_snoozed(queue: Queue) -> None:
    job = await queue.enqueue(run_at=await queue.at(90))
    told = await explain(queue, job)
    assert (codes(told), told["text"]) == (["timer"], "It is to run in 1 m 30 s.")
    assert told["commands"] == [f"fenceline jobs run-now {told['id']}"]
    await queue.move_clock(100)
    assert (await explain(queue, job))["code"] == "timer_overdue"
    await queue.maintain()
    error = {"type": "ConnectionError", "message": "no route\nto host", "traceback": "long"}
    await queue.run(job, "failed", error=error)
    told = await explain(queue, job)
    assert told["code"] == "retry"
    assert told["text"].startswith("Attempt 1 of 3 failed (ConnectionError: no route). The next begins in ")
    assert told["details"]["error"] == {"type": "ConnectionError", "message": "no route\nto host"}
    assert told["until"] is not None
    other = await queue.enqueue()
    await queue.run(other, "snoozed", delay=30.0)
    assert (await explain(queue, other))["text"] == "Its handler put it off for 30 s more."


async def test_claimed_running_and_asked_to_stop(queue: Queue) -> None:
    job = await queue.enqueue(timeout=600)
    attempt = await queue.claim_one()
    assert codes(await explain(queue, job)) == ["claimed"]
    await queue.rows("start_attempts", [job], [attempt.attempt_id])
    started = await queue.sql("select fenceline.clock()")
    await queue.call("set_progress", job, attempt.attempt_id, "inventory", {"done": 1})
    await queue.move_clock(30)
    told = await explain(queue, job)
    assert codes(told) == ["running"]
    assert told["text"] == (
        "It runs on worker for 30 s (attempt 1 of 3), in phase inventory; last sign of life 30 s ago."
    )
    assert (told["since"], told["details"]["timeout"]) == (started.isoformat(), 600)
    await queue.call("cancel_job", job, "ann")
    told = await explain(queue, job)
    assert (codes(told), told["details"]["actor"]) == (["stopping", "running"], "ann")
    assert told["until"] > told["since"]


async def test_its_worker_is_silent_or_frozen(queue: Queue) -> None:
    frozen = await queue.register("frozen", lease_seconds=30)
    job = await queue.enqueue()
    await queue.claim_one(worker=frozen)
    await queue.sql(
        "update fenceline.worker set blocked_at = fenceline.clock(), blocked_by = $1 where id = $2", job, frozen
    )
    await queue.move_clock(10)
    told = await explain(queue, job)
    assert codes(told) == ["worker_blocked", "claimed"]
    assert told["text"].startswith(
        "The event loop of its worker frozen has not turned for 10 s, because of this job's own"
    )
    await queue.move_clock(30)
    told = await explain(queue, job)
    assert codes(told) == ["worker_lost", "worker_blocked", "claimed"]
    assert told["commands"][0] == "fenceline sweep"


async def test_a_lock_and_who_holds_it(queue: Queue) -> None:
    jobs = [await queue.enqueue(), await queue.enqueue()]
    attempts = await queue.claim(2)
    for attempt in attempts:
        await queue.rows(
            "take_lock",
            attempt.job_id,
            attempt.attempt_id,
            "db",
            "orders",
            await queue.sql("select gen_random_uuid()"),
            [],
        )
    told = await explain(queue, jobs[1])
    assert codes(told) == ["lock", "claimed"]
    assert told["details"]["holder"] == await queue.public_id(jobs[0])


async def test_ends(queue: Queue) -> None:
    good = await queue.finished()
    assert (await explain(queue, good))["text"] == "It succeeded in attempt 1 of 3, after less than 1 s on worker."
    bad = await queue.enqueue(max_attempts=1)
    await queue.run(bad, "failed", error={"type": "ValueError", "message": "no"})
    told = await explain(queue, bad)
    assert (told["code"], told["status"]) == ("failed", "failed")
    assert told["text"] == "It failed for good in attempt 1 of 1, after less than 1 s on worker: ValueError: no."
    assert told["commands"] == [f"fenceline jobs {verb} {told['id']}" for verb in ("show", "retry")]
    again = (await queue.rows("retry_job", bad))[0]["job_id"]
    told = await explain(queue, bad)
    assert told["details"]["retried_as"] == await queue.public_id(again)
    await queue.call("cancel_job", again, "ann", "too late")
    told = await explain(queue, again)
    assert told["text"] == "It was cancelled before a worker had it, by ann: cancelled: too late."


async def test_encrypted_messages_stay_so(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.run(job, "failed", error={"type": "ValueError", "message": {"$sealed": "abc"}})
    assert (await explain(queue, job))["text"].startswith("Attempt 1 of 3 failed (ValueError). The next")


async def test_a_drained_system_lets_it_go_on(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.call("drain_system", True, "ann")
    told = await explain(queue, job)
    assert codes(told) == ["next", "system_draining"]
    assert told["also"][0]["since"] is not None


async def test_a_job_that_is_nowhere(queue: Queue) -> None:
    job = await queue.enqueue()
    await queue.sql("delete from fenceline.ready")
    assert codes(await explain(queue, job)) == ["nowhere"]


# Who may know what ---------------------------------------------------------------------------------------------------


async def test_a_foreign_job_is_not_there(queue: Queue) -> None:
    job = await queue.enqueue(tenant="acme")
    await explain(queue, job, tenant="acme")
    for who in ({"tenant": "evil"}, {"created_by": "ann"}):
        with pytest.raises(asyncpg.PostgresError) as refused:
            await explain(queue, job, **who)
        assert refused.value.sqlstate == "FL010"


async def test_holders_of_other_tenants_are_counted_and_not_named(queue: Queue) -> None:
    await queue.set_lane("default", slots=1)
    foreign = await queue.public_id(await queue.enqueue(tenant="rival"))
    await queue.claim(1)
    job = await queue.enqueue(tenant="acme")
    told = await explain(queue, job, tenant="acme")
    assert told["code"] == "lane_full"
    assert told["text"].endswith(": 1 job.")
    assert foreign not in str(told)
    assert "rival" not in str(told)
    assert foreign in str(await explain(queue, job))


async def test_jobs_of_others_are_not_named_to_who_sees_only_their_own(queue: Queue) -> None:
    made = await queue.rows("enqueue", "work", {}, {"key": "k"}, "ann")
    await queue.maintain()
    mine = (await queue.rows("enqueue", "work", {}, {"key": "k"}, "bob"))[0]["job_id"]
    told = await explain(queue, mine, created_by="bob")
    assert (told["code"], told["details"]["held"]) == ("key", 1)
    assert await queue.public_id(made[0]["job_id"]) not in str(told)


async def test_workers_are_named_to_those_who_may_see_the_fleet(queue: Queue) -> None:
    await queue.call("stop_worker", queue.worker)
    await queue.register("secret-host", lanes=["system"])
    await queue.register("theirs", lanes=["system"], tenant="rival")
    job = await queue.enqueue(tenant="acme")
    assert "secret-host" not in str(await explain(queue, job, tenant="acme", sees_fleet=False))
    told = await explain(queue, job, tenant="acme")
    assert "secret-host" in str(told)
    assert "theirs" not in str(told)
