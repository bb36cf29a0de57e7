"""Lanes: created, changed, drained and deleted while jobs are in them."""

from tests.conftest import Connect
from tests.sql.queue import Queue


async def test_the_seeded_lanes(queue: Queue) -> None:
    lanes = {row["name"]: row for row in await queue.rows("lanes")}
    seeded = {
        name: (lane["slots"], lane["poll_interval_ms"], lane["stale_timeout_seconds"], lane["default_priority"])
        for name, lane in lanes.items()
    }
    assert seeded == {
        "default": (None, 5000, None, 0),
        "interactive": (2, 2000, 1800, 10),
        "maintenance": (1, 15000, 1800, 0),
        "system": (1, 30000, 1800, 0),
    }


async def test_a_lane_is_created_with_what_is_given(queue: Queue) -> None:
    lane = await queue.call(
        "set_lane", "heavy", {"slots": 3, "on_stale": "fail", "kinds": ["b", "a", "b"]}, "ann", True
    )
    assert (lane["slots"], lane["on_stale"], lane["kinds"], lane["poll_interval_ms"]) == (3, "fail", ["a", "b"], 5000)
    event = (await queue.events("heavy"))[0]
    assert (event["action"], event["actor"], event["before"], event["after"]) == ("lane.create", "ann", None, lane)


async def test_only_what_is_given_changes_and_null_clears(queue: Queue) -> None:
    before = await queue.set_lane("heavy", slots=3, rate_per_second=2)
    after = await queue.call("set_lane", "heavy", {"slots": None, "fair": True}, "ann", False)
    assert after == {**before, "slots": None, "fair": True}
    event = (await queue.events("heavy"))[0]
    assert (event["action"], event["before"], event["after"]) == ("lane.change", before, after)


async def test_moving_kinds_moves_queued_scheduled_and_held_jobs(queue: Queue) -> None:
    queued = await queue.enqueue()
    scheduled = await queue.enqueue(run_at=await queue.at(60))
    held = await queue.enqueue(needs_approval=True)
    other = await queue.enqueue("other")
    running = await queue.enqueue(priority=9)
    await queue.claim_one()
    await queue.set_lane("heavy", kinds=["work"])
    lanes = [(await queue.job(job))["lane"] for job in (queued, scheduled, held, other, running)]
    assert lanes == ["heavy", "heavy", "heavy", "default", "default"]
    assert await queue.claimed_ids(5, "heavy") == [queued]


async def test_moved_jobs_keep_their_order(queue: Queue) -> None:
    await queue.set_lane("ageing", ageing_seconds=60)
    jobs = [await queue.enqueue(lane="ageing", priority=priority) for priority in (1, 3, 2)]
    await queue.set_lane("plain", kinds=["work"])
    assert await queue.claimed_ids(5, "plain") == [jobs[1], jobs[2], jobs[0]]


async def test_kinds_that_leave_the_list_go_by_their_decorators(queue: Queue) -> None:
    await queue.call("declare_kinds", {"work": {"lane": "decorated"}})
    await queue.set_lane("heavy", kinds=["work", "other"])
    stays = await queue.enqueue()
    await queue.set_lane("heavy", kinds=["other"])
    goes = await queue.enqueue()
    assert [(await queue.job(job))["lane"] for job in (stays, goes)] == ["heavy", "decorated"]


async def test_a_kind_is_listed_by_one_lane(queue: Queue) -> None:
    await queue.set_lane("a", kinds=["work"])
    await queue.set_lane("b", kinds=["work"])
    lanes = {row["name"]: row["kinds"] for row in await queue.rows("lanes")}
    assert (lanes["a"], lanes["b"]) == ([], ["work"])


async def test_turning_ageing_and_fairness_on_and_off_reorders_what_is_queued(queue: Queue) -> None:
    low = await queue.enqueue(tenant="a")
    await queue.move_clock(100)
    high = await queue.enqueue(priority=1, tenant="a")
    other = await queue.enqueue(tenant="b")
    await queue.set_lane("default", ageing_seconds=60, fair=True)
    attempts = await queue.claim(3)
    assert [attempt.job_id for attempt in attempts] != [high, low, other]
    assert attempts[0].job_id == low
    for attempt in attempts:
        await queue.finish(attempt, "released")
    await queue.set_lane("default", ageing_seconds=None, fair=False)
    assert await queue.claimed_ids(3) == [high, low, other]


async def test_delete_lane_forgets_an_empty_lane(queue: Queue) -> None:
    await queue.set_lane("heavy", kinds=["work"])
    await queue.call("delete_lane", "heavy", "ann")
    assert await queue.rows("lanes", "heavy") == []
    event = (await queue.events("heavy"))[0]
    assert (event["action"], event["actor"], event["after"]) == ("lane.delete", "ann", None)
    assert event["before"]["kinds"] == ["work"]
    assert (await queue.job(await queue.enqueue()))["lane"] == "default"


async def test_a_job_that_came_in_while_its_lane_was_deleted_gets_the_lane_back(queue: Queue, connect: Connect) -> None:
    await queue.set_lane("heavy")
    producer = await connect()
    async with producer.transaction():
        job = await producer.fetchval("""select job_id from fenceline.enqueue('work', '{}', '{"lane": "heavy"}')""")
        await queue.call("delete_lane", "heavy")
    await queue.call("upkeep", 0)
    assert await queue.claimed_ids(1, "heavy") == [job]
    assert [event["action"] for event in await queue.events("heavy")] == ["lane.create", "lane.delete", "lane.create"]


async def test_what_is_measured_of_a_lane(queue: Queue) -> None:
    for _ in range(3):
        await queue.enqueue(lane="interactive")
    await queue.claim(1, "interactive")
    await queue.move_clock(7)
    lane = (await queue.rows("lanes", "interactive"))[0]
    assert (lane["in_use"], lane["depth"], round(lane["oldest_age_seconds"])) == (1, 2, 7)


async def test_a_lane_says_when_it_was_changed(queue: Queue) -> None:
    before = (await queue.rows("describe_lanes", "interactive"))[0][0]["updated_at"]
    await queue.move_clock(7)
    changed = await queue.set_lane("interactive", slots=3)
    assert changed["updated_at"] == await queue.sql("select to_jsonb(fenceline.clock()) #>> '{}'") != before
    assert (await queue.rows("describe_lanes", "interactive"))[0][0]["updated_at"] == changed["updated_at"]
