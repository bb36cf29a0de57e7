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


async def test_an_unknown_lane_is_empty(queue: Queue) -> None:
    assert await queue.call("depth", "nowhere") == 0
