"""Retention: per kind and status, whole days at a time, and never a job that lives."""

from tests.conftest import Connect
from tests.sql.queue import Queue

DAY = 86400


async def partitions(queue: Queue, table: str = "job") -> list[str]:
    rows = await queue.connection.fetch(
        "select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::text::regclass order by 1",
        f"fenceline.{table}",
    )
    names = [row["name"].removeprefix("fenceline.") for row in rows]
    # Not those that the migration made for the days around today: the clock of these tests starts in 2030.
    return [name for name in names if name >= f"{table}_2030"]


async def where(queue: Queue, job: int) -> str:
    name = await queue.sql("select tableoid::regclass::text from fenceline.job where id = $1", job)
    return str(name).removeprefix("fenceline.")


async def test_finished_jobs_are_kept_for_seven_days(queue: Queue) -> None:
    job = await queue.finished()
    await queue.move_clock(7 * DAY)
    assert await queue.call("prune") == 0
    await queue.move_clock(1)
    assert await queue.call("prune") == 1
    assert await queue.call("get_job", job) is None
    assert await queue.sql("select count(*) from fenceline.history") == 0


async def test_retention_is_per_kind_and_status(queue: Queue) -> None:
    await queue.call("declare_kinds", {"short": {"retention": {"succeeded": 60, "failed": 30 * DAY}}})
    short_ok = await queue.finished("short")
    short_failed = await queue.finished("short", "failed_for_good")
    short_cancelled = await queue.finished("short", "cancelled")
    other = await queue.finished("other")

    async def left() -> list[int]:
        await queue.call("prune")
        rows = await queue.connection.fetch("select id from fenceline.job order by id")
        return [row["id"] for row in rows]

    assert await left() == [short_ok, short_failed, short_cancelled, other]
    await queue.move_clock(61)
    assert await left() == [short_failed, short_cancelled, other]
    await queue.move_clock(7 * DAY)
    assert await left() == [short_failed]
    await queue.move_clock(23 * DAY)
    assert await left() == []


async def test_a_batch_has_a_limit(queue: Queue) -> None:
    for _ in range(3):
        await queue.finished()
    await queue.move_clock(8 * DAY)
    assert await queue.call("prune", 2) == 2
    assert await queue.call("prune", 2) == 1


async def test_logs_and_progress_go_with_the_job(queue: Queue) -> None:
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("write_log", job, attempt.attempt_id, [{"message": "hello"}])
    await queue.call("set_progress", job, attempt.attempt_id, "phase")
    await queue.finish(attempt)
    await queue.move_clock(8 * DAY)
    await queue.call("prune")
    assert await queue.sql("select count(*) from fenceline.log") == 0
    assert await queue.sql("select count(*) from fenceline.progress") == 0


async def test_partitions_are_made_ahead_for_both_tables(queue: Queue) -> None:
    assert await queue.call("create_partitions", 2) == 6
    assert await partitions(queue) == ["job_20300101", "job_20300102", "job_20300103", "job_default"]
    assert await partitions(queue, "history") == [
        "history_20300101", "history_20300102", "history_20300103", "history_default",
    ]  # fmt: skip
    assert await queue.call("create_partitions", 2) == 0
    assert await where(queue, await queue.enqueue()) == "job_20300101"


async def test_a_day_that_has_rows_in_the_default_partition_stays_there(queue: Queue) -> None:
    job = await queue.enqueue()
    assert await queue.call("create_partitions", 1) == 2
    # Both or neither: history has no rows of today, and still gets no partition without its twin.
    assert await partitions(queue) == ["job_20300102", "job_default"]
    assert await partitions(queue, "history") == ["history_20300102", "history_default"]
    assert await where(queue, job) == "job_default"


async def test_a_day_past_retention_is_dropped_whole_and_what_lives_moves_aside(queue: Queue) -> None:
    await queue.call("create_partitions", 0)
    done = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("write_log", done, attempt.attempt_id, [{"message": "hello"}])
    await queue.finish(attempt)
    straggler = await queue.enqueue("work", {"n": 1}, run_at=await queue.at(365 * DAY), resource_lock="table")
    backing_off = await queue.enqueue(max_attempts=9)
    await queue.run(backing_off, "failed", delay=100 * DAY, error={"message": "kept"})
    await queue.move_clock(8 * DAY)
    await queue.call("create_partitions", 0)
    assert await partitions(queue) == ["job_20300101", "job_20300109", "job_default"]
    await queue.move_clock(2 * DAY)
    assert await queue.call("prune") == 1
    assert await partitions(queue) == ["job_20300109", "job_default"]
    assert await partitions(queue, "history") == ["history_20300109", "history_default"]
    assert await queue.call("get_job", done) is None
    assert await queue.sql("select count(*) from fenceline.log") == 0
    assert await where(queue, straggler) == "job_default"
    assert (await queue.job(straggler))["args"] == {"n": 1}
    assert [attempt["error"] for attempt in await queue.attempts(backing_off)] == [{"message": "kept"}]
    await queue.move_clock(365 * DAY)
    queue.worker = await queue.register(lease_seconds=DAY)
    await queue.maintain()
    for attempt in await queue.claim(2):
        assert await queue.finish(attempt) == "accepted"
    assert await queue.statuses([straggler, backing_off]) == ["succeeded", "succeeded"]


async def test_a_day_in_which_something_ended_late_is_not_dropped(queue: Queue) -> None:
    await queue.call("create_partitions", 0)
    job = await queue.enqueue(run_at=await queue.at(8 * DAY))
    await queue.move_clock(8 * DAY)
    queue.worker = await queue.register(lease_seconds=DAY)
    await queue.maintain()
    await queue.run(job)
    await queue.move_clock(3 * DAY)
    assert await queue.call("prune") == 0
    assert "job_20300101" in await partitions(queue)
    assert await queue.status(job) == "succeeded"


async def test_the_longest_retention_of_any_kind_keeps_a_day(queue: Queue) -> None:
    await queue.call("create_partitions", 0)
    await queue.call("declare_kinds", {"slow": {"retention": {"failed": 100 * DAY}}})
    job = await queue.finished("slow", "failed_for_good")
    await queue.move_clock(50 * DAY)
    assert await queue.call("prune") == 0
    assert await queue.status(job) == "failed"


async def test_a_locked_partition_is_left_for_the_next_time(queue: Queue, connect: Connect) -> None:
    await queue.call("create_partitions", 0)
    await queue.finished()
    await queue.move_clock(10 * DAY)
    other = await connect()
    async with other.transaction():
        await other.execute("select count(*) from fenceline.job")
        await queue.call("prune")
        assert "job_20300101" in await partitions(queue)
    await queue.call("prune")
    assert "job_20300101" not in await partitions(queue)


async def test_a_drop_that_does_not_get_its_locks_is_tried_ever_more_rarely(queue: Queue, connect: Connect) -> None:
    """While it asks for them, enqueues and claims wait behind it."""
    await queue.call("create_partitions", 1)
    for _ in range(2):
        await queue.finished()
        await queue.move_clock(DAY)
        queue.worker = await queue.register(lease_seconds=DAY)
    await queue.move_clock(10 * DAY)
    other = await connect()
    pause = "select pause_seconds from fenceline.maintenance where task = 'drop_days'"
    async with other.transaction():
        await other.execute("select count(*) from fenceline.job")
        for seconds in (60, 120, 240, 480, 960, 1920, 3600, 3600):
            await queue.rows("drop_days")
            assert await queue.sql(pause) == seconds
            await queue.move_clock(seconds - 1)
            await queue.rows("drop_days")
            assert await queue.sql(pause) == seconds
            await queue.move_clock(1)
    await queue.rows("drop_days")
    await queue.rows("drop_days")
    assert await queue.sql(pause) is None
    assert await partitions(queue) == ["job_default"]


async def test_what_its_days_partition_will_take_along_is_not_deleted_one_by_one(queue: Queue) -> None:
    """A day of equal retention costs one drop, not a delete per job; a shorter retention is meant to the minute."""
    await queue.call("create_partitions", 0)
    await queue.call("set_retention", 5 * DAY, "short")
    plain = await queue.finished()
    short = await queue.finished("short")
    await queue.move_clock(5 * DAY + 1)
    assert await queue.call("prune") == 1
    assert await queue.call("get_job", short) is None
    # Noon of the day on which it expires: its day is over at midnight.
    await queue.move_clock(2 * DAY)
    assert await queue.call("prune") == 0
    assert await queue.status(plain) == "succeeded"
    await queue.move_clock(DAY / 2)
    assert await queue.call("prune") == 1
    assert await partitions(queue) == ["job_default"]


async def test_a_day_that_cannot_be_dropped_does_not_keep_its_expired_jobs(queue: Queue) -> None:
    await queue.call("create_partitions", 0)
    expired = await queue.finished()
    late = await queue.enqueue()
    await queue.move_clock(5 * DAY)
    queue.worker = await queue.register(lease_seconds=DAY)
    await queue.run(late)
    await queue.move_clock(5 * DAY)
    assert await queue.call("prune") == 1
    assert await queue.call("get_job", expired) is None
    assert await queue.status(late) == "succeeded"


async def test_one_day_with_jobs_is_dropped_per_call(queue: Queue) -> None:
    """Its parents are locked until the transaction ends: two days are two short moments, not a long one."""
    await queue.call("create_partitions", 4)
    await queue.finished()
    await queue.move_clock(3 * DAY)
    queue.worker = await queue.register(lease_seconds=DAY)
    await queue.finished()
    await queue.move_clock(10 * DAY)
    assert await queue.call("prune") == 1
    assert await partitions(queue) == ["job_20300102", "job_20300103", "job_20300104", "job_20300105", "job_default"]
    assert await queue.call("prune") == 1
    assert await queue.call("prune") == 0
    assert await partitions(queue) == ["job_default"]


async def test_logs_of_a_day_go_first_and_bit_by_bit(queue: Queue) -> None:
    await queue.call("create_partitions", 0)
    job = await queue.enqueue()
    attempt = await queue.claim_one()
    await queue.call("write_log", job, attempt.attempt_id, [{"message": str(n)} for n in range(5)])
    await queue.finish(attempt)
    alive = await queue.enqueue(max_attempts=9)
    attempt = await queue.claim_one()
    await queue.call("write_log", alive, attempt.attempt_id, [{"message": "kept"}])
    await queue.finish(attempt, "failed", delay=100 * DAY)
    await queue.move_clock(8 * DAY)
    for left in (4, 2):
        assert await queue.call("prune", 2) == 0
        assert await queue.sql("select count(*) from fenceline.log") == left
        assert "job_20300101" in await partitions(queue)
    assert await queue.call("prune", 2) == 1
    assert await queue.sql("select array_agg(message) from fenceline.log") == ["kept"]
    assert await queue.status(alive) == "scheduled"


async def test_a_day_with_many_live_jobs_stays(queue: Queue) -> None:
    """Moving them under the lock would take long; what is finished goes row by row."""
    await queue.call("create_partitions", 0)
    done = await queue.finished()
    await queue.rows("enqueue_many", "work", [{}] * 1001, {"run_at": await queue.at(100 * DAY)})
    await queue.move_clock(10 * DAY)
    assert await queue.call("prune") == 1
    assert await queue.call("get_job", done) is None
    assert "job_20300101" in await partitions(queue)
    assert await queue.sql("select count(*) from fenceline.job") == 1001


async def test_upkeep_is_due_once_a_minute(queue: Queue) -> None:
    assert await queue.call("upkeep") == 0
    assert await partitions(queue) == ["job_20300101", "job_20300102", "job_20300103", "job_20300104", "job_default"]
    await queue.move_clock(59)
    assert await queue.call("upkeep") is None
    await queue.move_clock(1)
    assert await queue.call("upkeep") == 0


async def test_ticks_are_forgotten_faster_than_hundreds_of_schedules_make_them(queue: Queue) -> None:
    await queue.sql(
        "insert into fenceline.schedule_tick (schedule, tick_at, outcome, decided_at) "
        "select 's', t.at, 'fired', t.at from generate_series(1, 20000) n "
        "cross join lateral (select fenceline.clock() - interval '9 days' + make_interval(secs => n) as at) t"
    )
    await queue.sql("insert into fenceline.schedule_tick values ('s', fenceline.clock(), 'fired', fenceline.clock())")
    assert await queue.call("tidy_up", 0) is True
    assert await queue.sql("select count(*) from fenceline.schedule_tick") == 1


async def test_nothing_that_is_kept_of_a_job_is_forgotten_to_be_forgotten(queue: Queue) -> None:
    """A table that is new and has a job's id belongs into both ways to forget a job, or is a live job's only."""
    rows = await queue.connection.fetch(
        "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'job_id' "
        "where c.relnamespace = 'fenceline'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition"
    )
    tables = {row["relname"] for row in rows}
    of_live_jobs = {"ready", "running", "timer", "held", "resource_lock", "key_holder", "deadline", "child"}
    of_live_jobs |= {"attempt_lock", "lock_wait"}
    of_others = {
        "dedupe",
        "dedupe_check",
        "idempotency",
        "watch",
        "follow",
        "journal",
        "schedule_tick",
        "guard",
        "message",
        "signal_check",
        "refusal",
    }  # they have their own
    for function, besides in (("forget_jobs", {"history"}), ("forget_details", set())):
        body = await queue.sql("select prosrc from pg_proc where proname = $1", function)
        forgotten = {table for table in tables if f"delete from fenceline.{table} " in body}
        assert forgotten == tables - of_live_jobs - of_others - ({"history"} - besides), function
