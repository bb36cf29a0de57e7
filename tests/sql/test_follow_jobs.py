"""Being told what happens to jobs: only where somebody follows, everything where somebody does."""

import json
from typing import Any

import pytest
from tests.conftest import Connect
from tests.sql.queue import Queue


class Heard:
    """What a listener hears, in order."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._payloads: list[str] = []

    @classmethod
    async def start(cls, connect: Connect) -> "Heard":
        heard = cls(await connect())
        await heard._connection.add_listener("fenceline_changed", lambda *said: heard._payloads.append(said[3]))
        return heard

    async def ids(self) -> list[int]:
        await self._connection.execute("select 1")
        payloads, self._payloads[:] = list(self._payloads), []
        return [int(part) for payload in payloads for part in payload.split(",")]


@pytest.fixture
async def heard(queue: Queue, connect: Connect) -> Heard:
    return await Heard.start(connect)


async def test_every_change_of_a_followed_job_is_told_and_nothing_about_others(queue: Queue, heard: Heard) -> None:
    followed = await queue.enqueue()
    other = await queue.enqueue()
    await queue.call("follow_jobs", [followed])
    first, second = await queue.claim(2)
    assert await heard.ids() == [followed]
    for attempt in (first, second):
        args = (attempt.job_id, attempt.attempt_id)
        for function, more in (
            ("start_attempts", ()),
            ("write_log", ([{"message": "a"}],)),
            ("set_progress", ("load",)),
            ("move_items", ("completed", ["x"])),
        ):
            if function == "start_attempts":
                await queue.rows(function, [args[0]], [args[1]])
            else:
                await queue.call(function, *args, *more)
            assert await heard.ids() == ([followed] if attempt is first else []), function
        await queue.call("cancel_job", attempt.job_id)
        assert await heard.ids() == ([followed] if attempt is first else [])
        await queue.finish(attempt)
        assert await heard.ids() == ([followed] if attempt is first else [])
    assert first.job_id == followed
    assert second.job_id == other


async def test_a_retry_an_approval_and_a_new_priority_are_told(queue: Queue, heard: Heard) -> None:
    before = await queue.enqueue()
    job = await queue.enqueue(needs_approval=True, after=[await queue.call("public_id", before)])
    await queue.call("follow_jobs", [job])
    await queue.call("approve_job", job)
    assert await heard.ids() == [job]  # waiting for the other one
    await queue.run(before)
    assert await heard.ids() == [job]
    await queue.call("reprioritise_job", job, 5)
    assert await heard.ids() == [job]
    await queue.run(job, "failed")
    assert (await heard.ids()) == [job, job]  # claimed; back to the queue
    await queue.sql("update fenceline.timer set run_at = fenceline.clock()")
    await queue.call("promote_timers")
    assert await heard.ids() == [job]


async def test_nobody_is_told_after_the_time(queue: Queue, heard: Heard) -> None:
    job = await queue.enqueue()
    await queue.call("follow_jobs", [job], -1.0)
    await queue.run(job)
    assert await heard.ids() == []
    await queue.call("prune_requests")
    assert await queue.sql("select count(*) from fenceline.follow") == 0


async def test_the_journal_has_everything_in_order_and_no_notification(queue: Queue, heard: Heard) -> None:
    await queue.enqueue()  # before it is on
    await queue.call("follow_jobs", [0])
    start = await queue.call("journal_place")
    job = await queue.enqueue()
    await queue.claim_one()
    attempt = await queue.claim_one()
    assert attempt.job_id == job
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "a"}, {"message": "b"}])
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "c"}])
    await queue.finish(attempt)
    rows = [tuple(row) for row in await queue.rows("read_journal", start)]
    assert [row[0] for row in rows] == list(range(start + 1, start + 7))
    of_job = [row[3:] for row in rows if row[1] == job]
    assert of_job == [(None,) * 3, (None,) * 3, (attempt.token, 1, 2), (attempt.token, 3, 3), (None,) * 3]
    assert await heard.ids() == []
    assert await queue.rows("read_journal", start + 6) == []


async def test_places_are_given_in_the_order_of_commits(queue: Queue, connect: Connect) -> None:
    """Who reads up to a place never finds a lower one later, whenever the writers commit."""
    await queue.call("follow_jobs", [0])
    start = await queue.call("journal_place")
    late = await connect()
    transaction = late.transaction()
    await transaction.start()
    early_id = await late.fetchval("select job_id from fenceline.enqueue('early')")
    later_id = await queue.enqueue("later")
    first = await queue.rows("read_journal", start)
    assert [row["job_id"] for row in first] == [later_id]
    await transaction.commit()
    second = await queue.rows("read_journal", first[-1]["place"])
    assert [row["job_id"] for row in second] == [early_id]


async def test_a_place_that_cannot_be_continued_is_known(queue: Queue) -> None:
    await queue.call("follow_jobs", [0])
    start = await queue.call("journal_place")
    await queue.enqueue()
    [row] = await queue.rows("read_journal", start)
    assert await queue.call("journal_place", start) == start
    assert await queue.call("journal_place", row["place"]) == row["place"]
    # Off for a while, and on again: what happened meanwhile is nowhere.
    await queue.sql("update fenceline.follow set until = '-infinity'")
    await queue.enqueue()
    await queue.call("follow_jobs", [0])
    assert await queue.call("journal_place", start) is None
    assert await queue.call("journal_place", row["place"]) is None
    assert await queue.call("journal_place") > row["place"]


async def test_what_a_view_reads_is_of_one_moment_and_its_stamp_tells_every_change(queue: Queue) -> None:
    job = await queue.enqueue()
    seen = set()

    async def look() -> dict[str, Any]:
        [row] = await queue.rows("followed_jobs", [job], [0], [0])
        [stamp] = await queue.rows("followed_stamps", [job])
        assert stamp["stamp"] == row["stamp"]
        assert row["stamp"] not in seen
        seen.add(row["stamp"])
        return dict(row)

    queued = await look()
    assert queued["progress_version"] == 0
    attempt = await queue.claim_one()
    claimed = await look()
    assert claimed["status_version"] != queued["status_version"]
    await queue.rows("start_attempts", [job], [attempt.attempt_id])
    running = await look()
    await queue.sql("select fenceline.clock()")
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "a"}])
    logged = await look()
    assert (logged["status_version"], len(logged["lines"])) == (running["status_version"], 1)
    await queue.call("set_progress", job, attempt.attempt_id, "load")
    progressed = await look()
    assert progressed["status_version"] == running["status_version"]
    assert progressed["progress_version"] != 0
    await queue.finish(attempt)
    assert (await look())["status"] == "succeeded"
    await queue.call("delete_job", job)
    assert (await look())["job"] is None


async def test_an_unwatched_job_leaves_no_trace(queue: Queue, heard: Heard) -> None:
    """Nothing is written for followers, hooks or triggers, and nobody is told."""
    for _ in range(3):
        await queue.run(await queue.enqueue())
    assert await heard.ids() == []
    counts = await queue.sql(
        "select json_build_array((select count(*) from fenceline.follow), (select count(*) from fenceline.journal), "
        "(select count(*) from fenceline.hook), (select count(*) from fenceline.lane where name = 'webhooks'))"
    )
    assert (json.loads(counts) if isinstance(counts, str) else counts) == [0, 0, 0, 0]
