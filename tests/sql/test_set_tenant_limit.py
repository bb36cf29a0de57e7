"""How many unfinished jobs a tenant may have: what is refused, what is let through, and what it costs."""

import asyncpg
import pytest
from tests.conftest import Connect
from tests.sql.queue import Json, Queue


async def enqueue(queue: Queue, count: int = 1, tenant: str | None = None, **options: object) -> list[int]:
    given = {**options, **({} if tenant is None else {"tenant": tenant})}
    found: list[int] = await queue.call("enqueue_many", "work", [{}] * count, given)
    return found


async def refused(queue: Queue, count: int = 1, tenant: str | None = None, **options: object) -> str:
    before = await queue.sql("select count(*) from fenceline.job")
    with pytest.raises(asyncpg.PostgresError) as error:
        await enqueue(queue, count, tenant, **options)
    assert error.value.sqlstate == "FL023"
    assert await queue.sql("select count(*) from fenceline.job") == before
    return str(error.value)


async def test_without_a_limit_nothing_is_counted_or_refused(queue: Queue) -> None:
    await enqueue(queue, 20)
    assert (await queue.call("maintain", 0.0))["limits_tenants"] is False
    assert await queue.sql("select count(*) from fenceline.tenant_count") == 0
    assert [tuple(row) for row in await queue.rows("tenant_limits")] == [(None, None, None)]


async def test_a_batch_counts_as_its_size(queue: Queue) -> None:
    await queue.call("set_tenant_limit", 5, "acme")
    message = await refused(queue, 6, "acme")
    assert message.startswith("tenant 'acme' has 0 unfinished jobs, and 6 more would be over its limit of 5")
    await enqueue(queue, 5, "acme")
    await enqueue(queue, 20)  # of tenant default, which has no limit
    workflow = [{"kind": "work", "tenant": "acme", "ref": f"r{n}"} for n in range(6)]
    with pytest.raises(asyncpg.PostgresError, match="over its limit of 5"):
        await queue.call("enqueue_jobs", workflow)


async def test_a_default_for_every_tenant_and_words_for_some(queue: Queue) -> None:
    await queue.call("set_tenant_limit", 2)
    await queue.call("set_tenant_limit", 4, "acme")
    await refused(queue, 3)
    await refused(queue, 3, "other")
    await refused(queue, 5, "acme")
    await enqueue(queue, 4, "acme")
    await queue.move_clock(2)
    await queue.call("count_tenants")
    assert [tuple(row) for row in await queue.rows("tenant_limits")] == [(None, 2, None), ("acme", 4, 4)]
    await queue.call("set_tenant_limit", None, "acme")
    await refused(queue, 1, "acme")
    await queue.call("set_tenant_limit", None)
    await enqueue(queue, 9, "acme")


async def test_every_unfinished_job_counts_and_no_finished_one(queue: Queue) -> None:
    await enqueue(queue, 4)
    [running, done] = await queue.claim(2)
    await queue.finish(done)
    await enqueue(queue, 1, run_at="2090-01-01T00:00:00Z")
    await enqueue(queue, 1, needs_approval=True)
    await queue.call("set_tenant_limit", 6)
    [(_tenant, jobs)] = await queue.connection.fetch("select * from fenceline.tenant_count")
    assert jobs == 5, running
    await refused(queue, 2)
    await enqueue(queue, 1)


@pytest.mark.parametrize("options", [{}, {"priority": 3}, {"needs_approval": True}, {"key": "k"}])
async def test_every_way_in_is_guarded(queue: Queue, options: Json) -> None:
    await queue.call("set_tenant_limit", 0)
    for function in ("enqueue", "submit_job"):
        more = () if function == "enqueue" else (None, None, "default")
        with pytest.raises(asyncpg.PostgresError, match="over its limit of 0"):
            await queue.call(function, "work", {}, options, *more)
    await refused(queue, **options)


async def test_children_and_schedules_go_on(queue: Queue) -> None:
    [parent] = await enqueue(queue)
    [attempt] = await queue.claim(1)
    await queue.call("set_schedule", "tick", {"kind": "work", "every": 60})
    await queue.call("set_tenant_limit", 0)
    await queue.call("add_children", parent, attempt.attempt_id, "child", [{}])
    await queue.finish(attempt)
    await queue.call("run_schedule", "tick")
    assert await queue.sql("select count(*) from fenceline.ready") == 2
    with pytest.raises(asyncpg.PostgresError, match="over its limit"):
        await queue.call("enqueue", "work", origin="schedule")  # who only says that he is one
    with pytest.raises(asyncpg.PostgresError, match="over its limit"):
        await queue.call("retry_job", parent)


async def test_what_a_key_finds_is_no_new_job(queue: Queue) -> None:
    [first] = await enqueue(queue, idempotency_key="i")
    [other] = await enqueue(queue, dedupe_key="d")
    await queue.call("set_tenant_limit", 2)
    assert await enqueue(queue, idempotency_key="i") == [first]
    assert await enqueue(queue, dedupe_key="d") == [other]
    await refused(queue, idempotency_key="j")


async def test_what_comes_between_two_counts_is_let_in(queue: Queue) -> None:
    await queue.call("set_tenant_limit", 3)
    for _ in range(5):
        await enqueue(queue)
    await queue.move_clock(2)
    assert (await queue.call("maintain", 0.0))["limits_tenants"] is True
    await queue.call("count_tenants")
    await refused(queue)


async def test_the_count_follows(queue: Queue) -> None:
    async def counted() -> list[tuple[str, int]]:
        await queue.move_clock(2)
        await queue.call("count_tenants")
        return [tuple(row) for row in await queue.connection.fetch("select tenant, jobs from fenceline.tenant_count")]

    await queue.call("set_tenant_limit", 3)
    for count in (1, 2):
        await enqueue(queue)
        assert await counted() == [("default", count)]
    for attempt in await queue.claim(2):
        await queue.finish(attempt)
    assert await counted() == []


async def test_without_maintenance_an_enqueue_counts_now_and_then(queue: Queue) -> None:
    await queue.call("set_tenant_limit", 3)
    await enqueue(queue, 3)
    await queue.move_clock(9)
    await enqueue(queue)
    await queue.move_clock(2)
    await refused(queue)


async def test_open_transactions_neither_wait_nor_fail(queue: Queue, connect: Connect) -> None:
    await queue.call("set_tenant_limit", 100)
    await queue.move_clock(11)
    mine, other = await connect(), await connect()
    text = "select fenceline.enqueue('work')"
    strict = mine.transaction(isolation="repeatable_read")
    await strict.start()
    await mine.execute("select from fenceline.setting")  # from now on it sees nothing new, also no newer count
    async with other.transaction():
        await other.execute(text)  # counts, and keeps that to itself until it commits
        await queue.connection.execute("set lock_timeout = '1s'")
        await queue.connection.execute(text)
    await mine.execute(text)
    await strict.commit()
    assert await queue.sql("select count(*) from fenceline.ready") == 3


async def test_limits_are_checked_and_audited(queue: Queue) -> None:
    for values in ((-1,), (5, "A B")):
        with pytest.raises(asyncpg.PostgresError, match=r"out of range|is not a valid"):
            await queue.call("set_tenant_limit", *values)
    await queue.call("set_tenant_limit", 5, "acme", actor="ann")
    await queue.call("set_tenant_limit", 7, "acme", actor="ann")
    event = await queue.connection.fetchrow("select * from fenceline.event order by id desc limit 1")
    assert event is not None
    assert (event["actor"], event["action"], event["subject"]) == ("ann", "tenant.limit", "acme")
    assert (event["before"], event["after"]) == ({"max_jobs": 5}, {"max_jobs": 7})


async def test_without_a_limit_an_enqueue_does_not_look_for_one(queue: Queue) -> None:
    async def looks() -> int:
        await queue.sql("select pg_stat_force_next_flush()")
        return int(
            await queue.sql(
                "select sum(seq_scan + coalesce(idx_scan, 0)) from pg_stat_user_tables where relname like 'tenant%'"
            )
        )

    before = await looks()
    await queue.enqueue()
    await enqueue(queue, 3, priority=3)
    await enqueue(queue, 3, key="k")
    assert await looks() == before
    await queue.call("set_tenant_limit", 100)
    before = await looks()
    await queue.enqueue()
    assert await looks() > before
