"""How jobs ended, for clients that wait."""

from tests.sql.queue import Queue


async def test_ended_and_missing_jobs_have_a_row_and_live_ones_have_none(queue: Queue) -> None:
    done = await queue.enqueue()
    await queue.run(done, result={"rows": 1})
    failed = await queue.enqueue()
    await queue.run(failed, "failed_for_good", error={"code": "boom"})
    live = await queue.enqueue()
    rows = {row["job_id"]: row for row in await queue.rows("outcomes", [done, failed, live, 12345])}
    assert set(rows) == {done, failed, 12345}
    assert (rows[done]["status"], rows[done]["result"]) == ("succeeded", {"rows": 1})
    assert (rows[failed]["status"], rows[failed]["error"]) == ("failed", {"code": "boom"})
    assert rows[12345]["status"] is None
