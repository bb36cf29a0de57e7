"""One number for autoscalers."""

from tests.sql.queue import Queue


async def test_queued_due_and_lost_jobs_count(queue: Queue) -> None:
    assert await queue.call("depth") == 0
    await queue.enqueue()
    await queue.enqueue(lane="system")
    await queue.enqueue(needs_approval=True)
    await queue.enqueue(run_at=await queue.at(60))
    assert (await queue.call("depth"), await queue.call("depth", "default"), await queue.call("depth", "system")) == (
        2,
        1,
        1,
    )
    await queue.move_clock(60)
    assert await queue.call("depth", "default") == 2
    worker = await queue.register(lease_seconds=10)
    await queue.claim(1, worker=worker)
    assert await queue.call("depth", "default") == 1
    await queue.move_clock(11)
    assert await queue.call("depth", "default") == 2


async def test_a_drained_lane_counts_nothing(queue: Queue) -> None:
    await queue.enqueue()
    await queue.enqueue(lane="system")
    await queue.set_lane("default", enabled=False)
    assert (await queue.call("depth"), await queue.call("depth", "default")) == (1, 0)


async def test_the_view_shows_every_lane(queue: Queue) -> None:
    await queue.enqueue()
    await queue.enqueue(lane="system")
    await queue.set_lane("system", enabled=False)
    rows = await queue.connection.fetch("select lane, depth from fenceline.lane_depth")
    assert {row["lane"]: row["depth"] for row in rows} == {
        "default": 1,
        "interactive": 0,
        "maintenance": 0,
        "system": 0,
    }


async def test_a_reader_may_ask_the_view(queue: Queue) -> None:
    """As the autoscaler does: with nothing but the role fenceline_reader."""
    await queue.enqueue()
    await queue.connection.execute("set role fenceline_reader")
    assert await queue.sql("select depth from fenceline.lane_depth where lane = 'default'") == 1


async def test_an_unknown_lane_is_empty(queue: Queue) -> None:
    assert await queue.call("depth", "nowhere") == 0
