"""Being told when a job ends."""

from typing import Any

from tests.conftest import Connect
from tests.sql.queue import Queue


async def test_a_watched_job_is_told_once_and_others_not_at_all(queue: Queue, connect: Connect) -> None:
    heard: list[Any] = []
    listener = await connect()
    await listener.add_listener("fenceline_ended", lambda *said: heard.append(said[3]))
    watched, silent, cancelled = [await queue.enqueue() for _ in range(3)]
    await queue.call("watch_jobs", [watched, cancelled, watched])
    await queue.run(watched, "failed", delay=0)
    await queue.call("cancel_job", cancelled)
    await queue.run(silent)
    await queue.run(watched)
    await listener.execute("select 1")
    assert heard == [str(cancelled), str(watched)]
    assert await queue.sql("select count(*) from fenceline.watch") == 0


async def test_many_ids_fit_into_notifications(queue: Queue, connect: Connect) -> None:
    heard: list[Any] = []
    listener = await connect()
    await listener.add_listener("fenceline_ended", lambda *said: heard.append(said[3]))
    jobs = (await queue.rows("enqueue_many", "work", [{}] * 700))[0]["job_ids"]
    await queue.call("watch_jobs", jobs)
    attempts = await queue.claim(700)
    await queue.rows("finish_attempts", [a.job_id for a in attempts], [a.attempt_id for a in attempts])
    await listener.execute("select 1")
    assert sorted(int(job) for payload in heard for job in payload.split(",")) == jobs
