"""What the decorators of a program say."""

from tests.sql.queue import Queue


async def test_kinds_are_recorded_and_their_lanes_created(queue: Queue) -> None:
    says = {
        "lane": "heavy", "priority": 4, "max_attempts": 9, "retry": {"backoff": "fixed"}, "timeout": 1.5,
        "retention": {"failed": 60}, "finalizer": True,
    }  # fmt: skip
    await queue.call("declare_kinds", {"work": says, "plain": {}, "empty": dict.fromkeys(says)})
    row = await queue.connection.fetchrow("select * from fenceline.kind where name = 'work'")
    assert row is not None
    assert (row["default_lane"], row["priority"], row["max_attempts"]) == ("heavy", 4, 9)
    assert (row["retry"], row["timeout_seconds"], row["retention"]) == ({"backoff": "fixed"}, 1.5, {"failed": 60})
    assert row["finalizer"] is True
    assert len(await queue.rows("lanes", "heavy")) == 1
    for kind in ("plain", "empty"):
        row = await queue.connection.fetchrow("select * from fenceline.kind where name = $1", kind)
        assert row is not None
        assert set(dict(row).values()) == {kind, None, False}  # false: it has no finalizer


async def test_the_newest_word_counts(queue: Queue) -> None:
    await queue.call("declare_kinds", {"work": {"priority": 4, "lane": "a"}})
    await queue.call("declare_kinds", {"work": {"max_attempts": 2}})
    job = await queue.job(await queue.enqueue())
    assert (job["priority"], job["max_attempts"], job["lane"]) == (0, 2, "default")


async def test_an_operators_settings_are_left_alone(queue: Queue) -> None:
    await queue.set_lane("heavy", slots=3, kinds=["work"])
    await queue.call("declare_kinds", {"work": {"lane": "other"}, "more": {"lane": "heavy"}})
    assert (await queue.job(await queue.enqueue()))["lane"] == "heavy"
    lane = (await queue.rows("lanes", "heavy"))[0]
    assert (lane["slots"], lane["kinds"]) == (3, ["work"])


async def test_saying_the_same_again_writes_nothing(queue: Queue) -> None:
    await queue.call("declare_kinds", {"work": {"lane": "a", "priority": 1}})
    version = "select xmin::text || ctid::text from fenceline.kind"
    before = await queue.sql(version)
    await queue.call("declare_kinds", {"work": {"lane": "a", "priority": 1}})
    assert await queue.sql(version) == before
