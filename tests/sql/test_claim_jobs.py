"""Claims: the order of a lane, its limits, and what an attempt carries."""

import asyncio
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from tests.conftest import Connect
from tests.sql.queue import Queue, use_json
from tests.sql.sessions import waits_or_ends


async def test_a_claim_is_an_attempt_with_a_fence_and_a_token(queue: Queue) -> None:
    job = await queue.enqueue("work", {"n": 1}, timeout=9, max_attempts=2, priority=4)
    attempt = await queue.claim_one()
    assert (attempt.job_id, attempt.kind, attempt.args, attempt.tenant) == (job, "work", {"n": 1}, "default")
    assert (attempt.number, attempt.priority, attempt.max_attempts) == (1, 4, 2)
    assert (attempt.timeout_seconds, attempt.alone, attempt.more) == (9, False, None)
    row = await queue.job(job)
    assert (row["status"], row["attempt"], row["worker"]) == ("claimed", 1, "worker")
    assert row["claimed_at"] is not None
    assert row["started_at"] is None
    assert await queue.claim() == []


async def test_more_tells_what_a_handler_may_want_to_know(queue: Queue) -> None:
    parent = await queue.finished()
    await queue.enqueue(
        labels={"a": "b"}, snapshot={"x": None}, identity="me", after=[parent], parent=parent, group="g"
    )
    more = (await queue.claim_one()).more
    assert more is not None
    assert (more["labels"], more["snapshot"], more["identity"]) == ({"a": "b"}, {"x": None}, "me")
    assert (more["after"], more["parent"], more["group"]) == ([parent], parent, "g")


async def test_the_token_grows_with_every_claim_and_is_never_refunded(queue: Queue) -> None:
    job = await queue.enqueue()
    tokens, numbers = [], []
    for outcome in ("released", "snoozed", "failed", "succeeded"):
        attempt = await queue.run(job, outcome, delay=0)
        tokens.append(attempt.token)
        numbers.append(attempt.number)
    assert tokens == list(range(tokens[0], tokens[0] + 4))
    assert numbers == [1, 1, 1, 2]


async def test_the_high_bits_of_the_token_are_the_timeline(queue: Queue) -> None:
    await queue.enqueue()
    attempt = await queue.claim_one()
    timeline = await queue.sql("select timeline_id from pg_control_checkpoint()")
    assert (attempt.token >> 32, attempt.token & 0xFFFFFFFF) == (timeline, 1)
    # A promoted standby is on a higher timeline; a claim that was lost with the old one had a lower token.
    await queue.finish(attempt, "released")
    await queue.sql(
        "create or replace function fenceline.timeline() returns bigint language sql stable as 'select 7::bigint'"
    )
    assert (await queue.claim_one()).token == (7 << 32) + 1


# Order ------------------------------------------------------------------------------------------------------------


async def test_higher_priority_first_then_older(queue: Queue) -> None:
    low, first, second, high = [await queue.enqueue(priority=priority) for priority in (-1, 0, 0, 5)]
    assert await queue.claimed_ids(10) == [high, first, second, low]


async def test_a_lane_with_one_slot_starts_strictly_in_order(queue: Queue) -> None:
    await queue.set_lane("narrow", slots=1)
    jobs = [await queue.enqueue(lane="narrow", priority=n % 3) for n in range(9)]
    expected = sorted(range(9), key=lambda n: (-(n % 3), n))
    for n in expected:
        attempt = await queue.claim_one("narrow")
        assert attempt.job_id == jobs[n]
        assert await queue.claim(5, "narrow") == []
        await queue.finish(attempt)


async def test_a_released_job_keeps_its_place_and_a_retry_rejoins_at_the_tail(queue: Queue) -> None:
    first, second = await queue.enqueue(), await queue.enqueue()
    await queue.run(first, "released")
    attempt = await queue.claim_one()
    assert attempt.job_id == first
    await queue.finish(attempt, "failed", delay=0)
    assert await queue.claimed_ids(2) == [second, first]


async def test_a_due_timer_and_an_approved_job_join_at_the_tail(queue: Queue) -> None:
    timer = await queue.enqueue(run_at=await queue.at(10))
    approved = await queue.enqueue(needs_approval=True)
    plain = await queue.enqueue()
    await queue.move_clock(11)
    await queue.call("approve_job", approved)
    await queue.maintain()
    assert await queue.claimed_ids(3) == [plain, approved, timer]


async def test_with_ageing_a_waiting_job_gains_one_priority_per_interval(queue: Queue) -> None:
    await queue.set_lane("ageing", ageing_seconds=60)
    low = await queue.enqueue(lane="ageing", priority=0)
    await queue.move_clock(119)
    early = await queue.enqueue(lane="ageing", priority=2)
    await queue.move_clock(2)
    late = await queue.enqueue(lane="ageing", priority=2)
    attempts = await queue.claim(3, "ageing")
    assert [attempt.job_id for attempt in attempts] == [early, low, late]
    assert [attempt.priority for attempt in attempts] == [2, 0, 2]


async def test_a_job_given_back_in_a_lane_with_ageing_has_its_old_rank(queue: Queue) -> None:
    await queue.set_lane("ageing", ageing_seconds=60)
    jobs = [await queue.enqueue(lane="ageing", priority=priority) for priority in (3, 1, 2)]
    attempt = await queue.claim_one("ageing")
    await queue.finish(attempt, "released")
    assert (await queue.job(jobs[0]))["priority"] == 3
    assert await queue.claimed_ids(3, "ageing") == [jobs[0], jobs[2], jobs[1]]


async def test_a_fair_lane_serves_a_small_tenant_beside_a_large_one(queue: Queue) -> None:
    await queue.set_lane("fair", fair=True)
    await queue.rows("enqueue_many", "work", [{}] * 500, {"lane": "fair", "tenant": "large"})
    await queue.rows("enqueue_many", "work", [{}] * 5, {"lane": "fair", "tenant": "small"})
    tenants = [(await queue.claim_one("fair")).tenant for _ in range(10)]
    assert tenants.count("small") == 5
    assert [attempt.tenant for attempt in await queue.claim(3, "fair")] == ["large"] * 3


async def test_a_batch_of_a_fair_lane_is_shared_too_and_in_order_within_a_tenant(queue: Queue) -> None:
    await queue.set_lane("fair", fair=True)
    for tenant in ("a", "b", "c"):
        for priority in range(4):
            await queue.enqueue("work", {"priority": priority}, lane="fair", tenant=tenant, priority=priority)
    attempts = await queue.claim(6, "fair")
    by_tenant: dict[str, list[int]] = {}
    for attempt in attempts:
        by_tenant.setdefault(attempt.tenant, []).append(attempt.args["priority"])
    assert by_tenant == {"a": [3, 2], "b": [3, 2], "c": [3, 2]}
    # The turn goes on where it ended.
    assert (await queue.claim_one("fair")).tenant == "a"


async def test_in_a_fair_lane_jobs_that_a_worker_cannot_run_do_not_stand_in_its_way(queue: Queue) -> None:
    await queue.set_lane("fair", fair=True)
    await queue.enqueue("unknown", lane="fair", tenant="a")
    crashed = await queue.register()
    await queue.enqueue("work", lane="fair", tenant="b")
    await queue.claim(1, "fair", worker=crashed, kinds=["work"])
    await queue.call("report_crash", crashed)
    wanted = await queue.enqueue("work", lane="fair", tenant="c")
    assert await queue.claimed_ids(1, "fair", kinds=["work"]) == [wanted]


async def test_a_job_whose_enqueue_was_open_while_its_lane_became_fair_is_claimed(
    queue: Queue, connect: Connect
) -> None:
    await queue.set_lane("lane")
    other = await connect()
    async with other.transaction():
        job = await other.fetchval("""select job_id from fenceline.enqueue('work', '{}', '{"lane": "lane"}')""")
        await queue.set_lane("lane", fair=True)
    assert await queue.claimed_ids(1, "lane") == [job]


# Limits -----------------------------------------------------------------------------------------------------------


async def test_slots_are_counted_over_all_workers_and_a_finish_frees_one(queue: Queue) -> None:
    await queue.set_lane("narrow", slots=2)
    for _ in range(4):
        await queue.enqueue(lane="narrow")
    other = await queue.register()
    first = await queue.claim_one("narrow")
    assert len(await queue.claim(5, "narrow", worker=other)) == 1
    assert await queue.claim(5, "narrow") == []
    await queue.finish(first)
    assert len(await queue.claim(5, "narrow", worker=other)) == 1


async def test_lowering_a_limit_starts_no_claim_above_it(queue: Queue) -> None:
    await queue.set_lane("lane", slots=3)
    for _ in range(6):
        await queue.enqueue(lane="lane")
    attempts = await queue.claim(3, "lane")
    await queue.set_lane("lane", slots=2)
    await queue.finish(attempts[0])
    assert await queue.claim(5, "lane") == []
    await queue.finish(attempts[1])
    assert len(await queue.claim(5, "lane")) == 1


async def test_slots_given_to_a_busy_lane_count_what_runs_already(queue: Queue) -> None:
    for _ in range(4):
        await queue.enqueue()
    await queue.claim(2)
    await queue.set_lane("default", slots=3)
    assert len(await queue.claim(5)) == 1


async def test_no_slots_is_a_lane_that_stands(queue: Queue) -> None:
    await queue.set_lane("default", slots=0)
    await queue.enqueue()
    # In a session whose first claim this is.
    assert await queue.claim() == []
    assert await queue.claim(0) == []


async def test_a_drained_lane_accepts_jobs_and_starts_none(queue: Queue) -> None:
    await queue.set_lane("default", enabled=False)
    job = await queue.enqueue()
    assert await queue.claim() == []
    await queue.set_lane("default", enabled=True)
    assert await queue.claimed_ids() == [job]


async def test_a_full_lane_does_not_delay_another(queue: Queue) -> None:
    await queue.set_lane("narrow", slots=1)
    await queue.enqueue(lane="narrow")
    await queue.enqueue(lane="narrow")
    job = await queue.enqueue()
    await queue.claim(2, "narrow")
    assert await queue.claimed_ids() == [job]


async def test_the_rate_limit_is_exact_and_the_bucket_holds_the_burst(queue: Queue) -> None:
    await queue.set_lane("paced", rate_per_second=2, burst=5)
    for _ in range(40):
        await queue.enqueue(lane="paced")
    assert len(await queue.claim(20, "paced")) == 5
    assert await queue.claim(20, "paced") == []
    for seconds, expected in [(0.4, 0), (0.1, 1), (0.5, 1), (1.5, 3), (1000, 5)]:
        await queue.move_clock(seconds)
        assert len(await queue.claim(20, "paced")) == expected


async def test_without_a_burst_the_bucket_holds_a_second(queue: Queue) -> None:
    await queue.set_lane("paced", rate_per_second=3)
    await queue.set_lane("slow", rate_per_second=0.5)
    for lane in ("paced", "slow"):
        for _ in range(9):
            await queue.enqueue(lane=lane)
    assert len(await queue.claim(20, "paced")) == 3
    assert len(await queue.claim(20, "slow")) == 1
    await queue.move_clock(2)
    assert len(await queue.claim(20, "slow")) == 1


async def test_what_is_refused_at_the_claim_costs_nothing_of_a_rate(queue: Queue) -> None:
    await queue.set_lane("paced", rate_per_second=1, burst=5)
    for _ in range(4):
        await queue.enqueue(lane="paced", expires_at=await queue.at(1))
    jobs = [await queue.enqueue(lane="paced") for _ in range(6)]
    await queue.move_clock(1)
    assert await queue.claimed_ids(5, "paced") == jobs[:1]
    assert await queue.claimed_ids(9, "paced") == jobs[1:5]


async def test_a_rate_tells_when_the_next_claim_is_due(queue: Queue) -> None:
    await queue.set_lane("paced", rate_per_second=2, burst=1)
    await queue.set_lane("idle", rate_per_second=2)
    for _ in range(3):
        await queue.enqueue(lane="paced")

    async def pauses() -> dict[str, float]:
        return {row["lane"]: row["seconds"] for row in await queue.rows("rate_pauses", ["paced", "idle", "default"])}

    assert await pauses() == {"paced": 0, "idle": 0}
    assert len(await queue.claim(20, "paced")) == 1
    assert await pauses() == {"paced": pytest.approx(0.5), "idle": 0}
    await queue.move_clock(0.4)
    assert await pauses() == {"paced": pytest.approx(0.1), "idle": 0}
    await queue.move_clock(0.1)
    assert await pauses() == {"paced": 0, "idle": 0}


async def test_an_enormous_rate_is_no_limit(queue: Queue) -> None:
    await queue.set_lane("paced", rate_per_second=1e12)
    await queue.enqueue(lane="paced")
    assert len(await queue.claim(20, "paced")) == 1


# Addresses ---------------------------------------------------------------------------------------------------------


async def claim_as(queue: Queue, worker: int, limit: int = 20, lane: str = "default", **more: Any) -> list[int]:
    return [row["job_id"] for row in await queue.rows("claim_jobs", worker, lane, limit, **more)]


async def test_an_addressed_job_goes_to_whom_it_is_meant_for(queue: Queue) -> None:
    eu, gpu, plain = (
        await queue.register("eu-1", labels={"region": "eu"}),
        await queue.register("us-1", labels={"region": "us", "gpu": "yes"}),
        await queue.register("us-2"),
    )
    to_name = await queue.enqueue(runner="eu-1")
    to_label = await queue.enqueue(runner={"region": "us"})
    to_both = await queue.enqueue(runner={"gpu": "yes", "region": "us"})
    to_nobody = await queue.enqueue(runner="away")
    to_no_pair = await queue.enqueue(runner={"region": "eu", "gpu": "yes"})
    free = await queue.enqueue()
    assert await claim_as(queue, plain) == [free]
    assert await claim_as(queue, gpu) == [to_label, to_both]
    assert await claim_as(queue, eu) == [to_name]
    for worker in (eu, gpu, plain, queue.worker):
        assert await claim_as(queue, worker) == []
    assert await claim_as(queue, await queue.register("away")) == [to_nobody]
    assert await queue.status(to_no_pair) == "queued"


async def test_a_name_that_looks_like_labels_is_a_name(queue: Queue) -> None:
    job = await queue.enqueue(runner='{"region": "eu"}')
    assert await claim_as(queue, await queue.register("x", labels={"region": "eu"})) == []
    assert await claim_as(queue, await queue.register('{"region": "eu"}')) == [job]


async def test_an_absent_runner_holds_up_nobody(queue: Queue) -> None:
    """Neither in the lane's order nor by its slots, in no sort of lane."""
    for lane, settings in (
        ("one-slot", {"slots": 1}), ("fair", {"fair": True}), ("ageing", {"ageing_seconds": 10}), ("plain", {}),
    ):  # fmt: skip
        await queue.set_lane(lane, **settings)
        for _ in range(3):
            await queue.enqueue(lane=lane, runner="away", priority=9)
        free = await queue.enqueue(lane=lane)
        assert await claim_as(queue, queue.worker, lane=lane) == [free]
    tenant = await queue.register("bound", tenant="default")
    free = await queue.enqueue(lane="plain")
    assert await claim_as(queue, tenant, lane="plain") == [free]


@pytest.mark.parametrize("outcome", ["failed", "released", "snoozed"])
async def test_what_comes_back_is_still_addressed(queue: Queue, outcome: str) -> None:
    other = await queue.register("other")
    mine = await queue.register("mine")
    job = await queue.enqueue(runner="mine", key="k", run_at=None)
    [row] = await queue.rows("claim_jobs", mine, "default", 1)
    await queue.rows("finish_attempts", [job], [row["attempt_id"]], [outcome])
    await queue.move_clock(3600)
    await queue.rows("heartbeat", [mine, other])
    mine, other = await queue.register("mine"), await queue.register("other")
    await queue.call("maintain", 0)
    assert await claim_as(queue, other) == []
    assert await claim_as(queue, mine) == [job]


async def test_a_retry_and_a_suspect_are_still_addressed(queue: Queue) -> None:
    mine, other = await queue.register("mine"), await queue.register("other")
    job = await queue.enqueue(runner={"zone": "a"}, max_attempts=1)
    labelled = await queue.register("labelled", labels={"zone": "a"})
    [row] = await queue.rows("claim_jobs", labelled, "default", 1)
    await queue.rows("finish_attempts", [job], [row["attempt_id"]], ["failed"])
    again = await queue.call("retry_job", job)
    assert again is not None
    assert await claim_as(queue, other) == []
    [retried] = await claim_as(queue, labelled)
    assert retried != job
    suspect = await queue.enqueue(runner="mine")
    assert await claim_as(queue, mine) == [suspect]
    await queue.call("report_crash", mine)
    mine = await queue.register("mine")
    assert await claim_as(queue, other, alone=True) == []
    lanes = {row["name"]: row["suspects"] for row in await queue.rows("worker_lanes", None, other)}
    assert not lanes["default"]
    lanes = {row["name"]: row["suspects"] for row in await queue.rows("worker_lanes", None, mine)}
    assert lanes["default"]
    assert await claim_as(queue, mine, alone=True) == [suspect]


async def test_the_view_says_whom_a_job_is_meant_for(queue: Queue) -> None:
    named, labelled, free = (
        await queue.enqueue(runner="mine"),
        await queue.enqueue(runner={"zone": "a"}),
        await queue.enqueue(),
    )
    for job, runner in ((named, "mine"), (labelled, {"zone": "a"}), (free, None)):
        described = await queue.call("describe_job", job)
        assert described["runner"] == runner
        assert "runner" not in await queue.call("get_job", job), "0.1 does not know it"


# Keys -------------------------------------------------------------------------------------------------------------


async def test_jobs_of_one_key_run_one_at_a_time_in_order(queue: Queue) -> None:
    first, second, urgent = [await queue.enqueue(key="k", priority=priority) for priority in (0, 0, 5)]
    order = []
    for _ in range(3):
        attempt = await queue.claim_one()
        assert await queue.claim(5) == []
        order.append(attempt.job_id)
        await queue.finish(attempt)
    assert order == [urgent, first, second]


async def test_a_key_limit_lets_so_many_run(queue: Queue) -> None:
    jobs = [await queue.enqueue(key="k", key_limit=3) for _ in range(5)]
    attempts = await queue.claim(5)
    assert [attempt.job_id for attempt in attempts] == jobs[:3]
    assert await queue.statuses(jobs[3:]) == ["waiting:key"] * 2
    await queue.finish(attempts[1])
    assert await queue.claimed_ids(5) == [jobs[3]]


async def test_the_head_of_a_key_decides_with_its_own_limit(queue: Queue) -> None:
    await queue.enqueue(key="k", key_limit=5)
    await queue.claim(5)
    await queue.enqueue(key="k", key_limit=1)
    await queue.enqueue(key="k", key_limit=5)
    assert await queue.claim(5) == []


async def test_keys_are_per_tenant(queue: Queue) -> None:
    for tenant in ("a", "b"):
        await queue.enqueue(key="k", tenant=tenant)
    assert len(await queue.claim(5)) == 2


async def test_a_job_keeps_its_key_until_it_ends(queue: Queue) -> None:
    first, second = await queue.enqueue(key="k"), await queue.enqueue(key="k")
    for outcome in ("failed", "snoozed", "released"):
        await queue.run(first, outcome, delay=60)
        await queue.maintain()
        assert await queue.status(second) == "waiting:key"
        await queue.move_clock(61)
        await queue.maintain()
    await queue.run(first, "failed_for_good")
    assert await queue.claimed_ids() == [second]


async def test_a_key_that_frees_long_after_the_request_is_found_by_the_resolver(queue: Queue) -> None:
    await queue.enqueue(key="k")
    await queue.move_clock(5)  # a claim looks at requests of the last two seconds only
    assert await queue.claim() == []
    assert (await queue.maintain())["admitted"] == 1
    assert len(await queue.claim()) == 1


# Kinds, suspects, floors ------------------------------------------------------------------------------------------


async def test_a_worker_gets_only_kinds_it_knows(queue: Queue) -> None:
    jobs = {kind: await queue.enqueue(kind) for kind in ("a", "b", "c")}
    worker = await queue.register(kinds=["b"])
    assert await queue.claimed_ids(5, worker=worker) == [jobs["b"]]
    assert await queue.claimed_ids(5, kinds=["c"]) == [jobs["c"]]
    assert await queue.claimed_ids(5) == [jobs["a"]]


async def test_a_late_commit_is_found_where_another_set_of_kinds_keeps_the_lane_busy(queue: Queue) -> None:
    """Each set of kinds looks below its own lower bounds: what one finds there says nothing about the other's jobs."""
    rare = await queue.register(kinds=["rare"], lease_seconds=86400)
    for _ in range(3):
        late = await queue.enqueue("rare")
        floors: dict[str, Any] = {"floor_priorities": [0], "floor_seqs": [late + 1]}
        found: list[int] = []
        for _ in range(6):
            await queue.enqueue("busy")
            assert len(await queue.claim(1, kinds=["busy"], **floors)) == 1
            found += await queue.claimed_ids(1, worker=rare, **floors)
            await queue.move_clock(0.25)
        assert found == [late], "a late commit waits for a second, not for its luck"


async def test_a_worker_is_told_of_suspects_that_it_could_run(queue: Queue) -> None:
    await queue.set_lane("apart", kinds=["a"])
    for kind in ("a", "b"):
        await queue.enqueue(kind)
        died = await queue.register(kinds=[kind])
        assert len(await queue.claim(1, "apart" if kind == "a" else "default", worker=died)) == 1
        await queue.call("report_crash", died)

    async def told(worker: int) -> list[str]:
        return [row["name"] for row in await queue.rows("worker_lanes", None, worker) if row["suspects"]]

    assert await told(await queue.register(kinds=["a"])) == ["apart"]
    assert await told(await queue.register(kinds=["c"])) == []
    assert await told(await queue.register()) == ["apart", "default"]


async def test_suspects_come_by_priority_and_age_to_those_who_may_have_them(queue: Queue) -> None:
    jobs = [await queue.enqueue("a", tenant="one"), await queue.enqueue("b", tenant="two", priority=5)]
    died = await queue.register()
    await queue.claim(2, worker=died)
    await queue.call("report_crash", died)
    await queue.enqueue("a")
    bound = await queue.register(tenant="one")
    assert await queue.claimed_ids(9, worker=bound, alone=True, kinds=["b"]) == []
    for fair in (False, True):
        await queue.set_lane("default", fair=fair)
        attempts = await queue.claim(9, alone=True)
        assert [attempt.job_id for attempt in attempts] == jobs[::-1]
        for attempt in attempts:
            await queue.finish(attempt, "released")
    assert await queue.claimed_ids(9, worker=bound, alone=True) == [jobs[0]]


async def test_floors_skip_what_is_below_except_once_a_second(queue: Queue) -> None:
    jobs = [await queue.enqueue() for _ in range(4)]
    await queue.set_lane("default")
    # The first claim with floors scans everything and notes it.
    floors: dict[str, Any] = {"floor_priorities": [0], "floor_seqs": [jobs[2]]}
    assert await queue.claimed_ids(1, **floors) == [jobs[0]]
    assert await queue.claimed_ids(1, **floors) == [jobs[2]]
    assert await queue.claimed_ids(5, **floors) == [jobs[3]]
    assert await queue.claimed_ids(5, **floors) == []
    await queue.move_clock(0.9)
    assert await queue.claimed_ids(5, **floors) == []
    await queue.move_clock(0.1)
    assert await queue.claimed_ids(5, **floors) == [jobs[1]]


async def test_between_known_priorities_the_scan_is_unbounded(queue: Queue) -> None:
    await queue.enqueue()
    await queue.claim(1, floor_priorities=[0], floor_seqs=[0])
    jobs = {priority: await queue.enqueue(priority=priority) for priority in (-1, 0, 1, 2, 3)}
    never = 2**62
    claimed = await queue.claimed_ids(9, floor_priorities=[2, 0], floor_seqs=[never, never])
    assert claimed == [jobs[3], jobs[1], jobs[-1]]


# Refusals at the claim --------------------------------------------------------------------------------------------


async def test_an_expired_job_is_passed_over(queue: Queue) -> None:
    expired = await queue.enqueue(expires_at=await queue.at(10))
    other = await queue.enqueue()
    await queue.move_clock(10)
    assert await queue.claimed_ids(2) == [other]
    job = await queue.job(expired)
    assert (job["status"], job["error"]["code"]) == ("cancelled", "expired")


async def test_a_job_whose_configuration_has_changed_runs_nothing(queue: Queue) -> None:
    planned = await queue.call("snapshot_hash", {"size": 1, "zone": "a"})
    same = await queue.enqueue(snapshot={"zone": "a", "size": 1.0}, requires_hash=planned)
    changed = await queue.enqueue(snapshot={"zone": "b", "size": 1}, requires_hash=planned)
    missing = await queue.enqueue(requires_hash=planned)
    assert await queue.claimed_ids(5) == [same]
    for job_id in (changed, missing):
        job = await queue.job(job_id)
        assert (job["status"], job["attempt"], job["error"]["code"]) == ("failed", 0, "plan_hash_mismatch")
        assert planned in job["error"]["message"]


async def test_a_job_refused_at_the_claim_frees_what_it_held(queue: Queue) -> None:
    await queue.enqueue(expires_at=await queue.at(1), resource_lock="table", dedupe_key="d", key="k")
    await queue.maintain()
    await queue.move_clock(1)
    assert await queue.claim() == []
    job = await queue.enqueue(resource_lock="table", dedupe_key="d", key="k")
    assert await queue.claimed_ids() == [job]


# Repeats ----------------------------------------------------------------------------------------------------------


async def test_the_same_request_again_returns_the_same_attempts(queue: Queue) -> None:
    for priority in (1, 5):
        await queue.enqueue(priority=priority)
    await queue.enqueue(labels={"a": "b"})
    request = uuid4()
    first = await queue.claim(3, request_id=request)
    await queue.enqueue()
    assert await queue.claim(3, request_id=request) == first
    await queue.finish(first[0])
    assert await queue.claim(3, request_id=request) == first[1:]
    assert len(await queue.claim(3, request_id=uuid4())) == 1


async def test_a_request_that_got_nothing_may_be_repeated(queue: Queue) -> None:
    request = uuid4()
    assert await queue.claim(1, request_id=request) == []
    job = await queue.enqueue()
    assert await queue.claimed_ids(1, request_id=request) == [job]


async def test_a_worker_that_registered_again_may_repeat_its_request(queue: Queue) -> None:
    await queue.enqueue()
    request = uuid4()
    await queue.claim(1, request_id=request)
    await queue.call("stop_worker", queue.worker)
    again = await queue.register()
    attempts = await queue.claim(1, request_id=request, worker=again)
    assert len(attempts) == 1
    assert await queue.claim(1, request_id=request, worker=again) == attempts


async def test_a_repeat_while_the_first_is_under_way_gets_the_same_attempts(queue: Queue, connect: Connect) -> None:
    first_job = await queue.enqueue()
    await queue.enqueue()
    request = uuid4()
    connection = await connect()
    await use_json(connection)
    other = Queue(connection, queue.worker)
    async with queue.connection.transaction():
        first = await queue.claim(1, request_id=request)
        repeat = asyncio.create_task(other.claim(1, request_id=request))
        assert await waits_or_ends(await connect(), connection, repeat)
    assert [attempt.job_id for attempt in first] == [first_job]
    assert await repeat == first


# Workers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", ["expired", "stopped", "unknown"])
async def test_a_worker_without_a_lease_gets_nothing(queue: Queue, gone: str) -> None:
    worker = await queue.register(lease_seconds=10)
    if gone == "expired":
        await queue.move_clock(10)
    elif gone == "stopped":
        await queue.call("stop_worker", worker)
    else:
        worker = 999
    job = await queue.enqueue()
    with pytest.raises(asyncpg.PostgresError) as error:
        await queue.claim(worker=worker)
    assert error.value.sqlstate == "FL015"
    assert await queue.status(job) == "queued"


async def test_a_freed_slot_wakes_a_worker_that_waits(queue: Queue, connect: Connect) -> None:
    heard: list[Any] = []
    listener = await connect()
    await listener.add_listener("fenceline_ready", lambda *said: heard.append(said[3]))
    await queue.set_lane("narrow", slots=1)
    waiting = await queue.register()
    for outcome in ("succeeded", "failed", "released"):
        await queue.enqueue(lane="narrow", priority=1)
        await queue.enqueue(lane="narrow")
        attempt = await queue.claim_one("narrow")
        await queue.claim(1, "narrow", worker=waiting, wait_seconds=30)
        heard.clear()
        await queue.finish(attempt, outcome, delay=60)
        await listener.execute("select 1")
        assert heard == ["narrow"], outcome
        await queue.set_lane("narrow", slots=None)
        await queue.claim(9, "narrow", worker=waiting)
        await queue.call("report_crash", waiting, [])
        for job in await queue.connection.fetch("select job_id from fenceline.jobs where finished_at is null"):
            await queue.call("cancel_job", job["job_id"], force=True)
        waiting = await queue.register()
        await queue.set_lane("narrow", slots=1)
