from tests.sql.queue import Queue


async def test_x(queue: Queue) -> None:
    job = await queue.enqueue()
    assert await queue.status(job) == "queued"
