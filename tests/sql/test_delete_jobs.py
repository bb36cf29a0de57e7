"""Deleting finished jobs by the thousand."""

from tests.sql.queue import Queue


async def test_only_finished_ones_go_and_one_event_tells(queue: Queue) -> None:
    finished = [await queue.enqueue() for _ in range(3)]
    for _ in finished:
        await queue.finish(await queue.claim_one())
    running = await queue.enqueue()
    await queue.claim_one()
    queued = await queue.enqueue()
    kept = finished.pop()
    given = [*finished, finished[0], running, queued, 12345]
    assert await queue.call("delete_jobs", given, "ann", "no use") == 2
    left = await queue.sql("select array_agg(id order by id) from fenceline.job")
    assert left == sorted([kept, running, queued])
    assert await queue.sql("select count(*) from fenceline.history") == 1
    (event,) = await queue.events("jobs")
    assert (event["action"], event["actor"], event["reason"]) == ("jobs.delete", "ann", "no use")
    assert event["before"] == {"work": 2}
    assert await queue.call("delete_jobs", given) == 0
    assert await queue.call("delete_jobs", []) == 0
    assert await queue.call("delete_jobs", None) == 0
    assert len(await queue.events("jobs")) == 1
