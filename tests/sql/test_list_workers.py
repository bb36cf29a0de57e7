"""Who is there to work."""

from tests.sql.queue import Queue


async def test_those_signed_on_with_what_they_hold_and_what_is_left_of_their_lease(queue: Queue) -> None:
    await queue.enqueue()
    await queue.enqueue()
    await queue.claim(2)
    late = await queue.register("late", lease_seconds=10, lanes=["system"], host="h", pid=7, version="1.2")
    gone = await queue.register("gone")
    await queue.call("stop_worker", gone)
    await queue.move_clock(15)
    rows = {row["name"]: row for row in await queue.rows("list_workers")}
    assert list(rows) == ["worker", "late"]
    assert (rows["worker"]["running"], rows["worker"]["lanes"], rows["worker"]["stopped_at"]) == (2, None, None)
    assert rows["worker"]["lease_seconds_left"] == 86400 - 15
    assert (rows["late"]["id"], rows["late"]["running"], rows["late"]["lanes"]) == (late, 0, ["system"])
    assert (rows["late"]["host"], rows["late"]["pid"], rows["late"]["version"]) == ("h", 7, "1.2")
    assert rows["late"]["lease_seconds_left"] == -5


async def test_those_gone_come_last_newest_100_only(queue: Queue) -> None:
    ids = [await queue.register(f"gone{n}") for n in range(102)]
    for worker in ids:
        await queue.call("stop_worker", worker)
    rows = await queue.rows("list_workers", True)
    assert [row["id"] for row in rows] == [queue.worker, *ids[2:]]
    assert all(row["stopped_at"] for row in rows[1:])
