"""Groups: enqueued together or not at all, waited for together."""

import asyncio
from typing import Any

import asyncpg
import pytest
from tests.client.conftest import Worker
from tests.conftest import Connect
from tests.support.patience import seconds_left

from fenceline import Context, Fenceline, InvalidArgs, WrongStatus
from fenceline.client.app_parts import app_parts
from fenceline.errors import DependencyCycle, EmptyGroup, InvalidOption, MissingDependency
from fenceline.model.public_id import format_id, parse_id


def handlers(app: Fenceline) -> None:
    @app.job()
    async def subtask(part: int) -> int:
        return part

    @app.job()
    async def synthesize(ctx: Context) -> None: ...


async def test_a_group_is_one_statement_and_its_handles_work(app: Fenceline, worker: Worker) -> None:
    handlers(app)
    async with app.group("release-7") as g:
        first = await g.enqueue(app_parts(app).handlers["subtask"], {"part": 1}, priority=4)
        more = await g.enqueue_many("subtask", [{"part": 2}, {"part": 3}], labels={"of": "release"})
        follower = await g.then("synthesize", policy="always")
        other = await g.enqueue("known.elsewhere", {"any": "thing"})
        assert await worker.count_jobs() == 0
        with pytest.raises(WrongStatus, match="it has no id before"):
            await first.get()
    assert await worker.count_jobs() == 5
    records = [await job.get() for job in (first, *more, other, follower)]
    assert [record.status for record in records] == ["queued"] * 4 + ["waiting"]
    assert records[0].priority == 4
    assert records[1].labels == {"of": "release"}
    assert records[4].waiting_for == "dependencies"
    assert g.jobs == [first, *more, other]
    assert g.following == [follower]
    assert all(job.created for job in g.jobs)
    waits_for = await worker.connection.fetchval("select after from fenceline.job where id = $1", parse_id(follower.id))
    assert waits_for == sorted(parse_id(job.id) for job in g.jobs)
    # A handle knows the type of its result.
    await worker.run(first, result=1)
    assert await first.result(seconds_left()) == 1


async def test_jobs_of_a_group_can_wait_for_each_other(app: Fenceline, worker: Worker) -> None:
    async with app.group() as g:
        plan = await g.enqueue("plan")
        parts = await g.enqueue_many("part", [{"n": 1}, {"n": 2}], after=[plan])
        await g.enqueue("whole", after={"jobs": parts, "policy": "always"})
    whole = g.jobs[-1]
    assert [str(await job.status()) for job in g.jobs] == ["queued", "waiting", "waiting", "waiting"]
    await worker.run(plan)
    assert [str(await job.status()) for job in g.jobs] == ["succeeded", "queued", "queued", "waiting"]
    await worker.run(parts[0], "failed_for_good", error={"code": "error", "message": "no"})
    await worker.run(parts[1])
    assert await whole.status() == "queued"
    await worker.run(whole)
    assert [str(status) for status in await g.wait(seconds_left())] == ["succeeded", "failed", "succeeded", "succeeded"]


async def test_a_job_enqueued_later_waits_for_the_whole_group(app: Fenceline, worker: Worker) -> None:
    async with app.group() as g:
        first, second = await g.enqueue_many("part", [{}, {}])
    by_group = await app.enqueue("whole", after=g)
    by_name = await app.enqueue("whole", after={"group": g.name, "policy": "always"})
    by_handles = await app.enqueue("whole", after=g.jobs)
    await worker.run(first)
    await worker.run(second, "failed_for_good")
    assert [str(await job.status()) for job in (by_group, by_name, by_handles)] == ["cancelled", "queued", "cancelled"]
    record = await by_group.get()
    assert record.error is not None
    assert record.error["code"] == "dependency_failed"
    assert second.id in record.error["message"]


async def enqueue_group(app: Fenceline, *jobs: dict[str, Any], error: Exception | None = None) -> None:
    async with app.group() as g:
        for options in jobs:
            await g.enqueue("subtask", {"part": 1, **options.pop("args", {})}, **options)
        if error is not None:
            raise error


async def test_nothing_is_enqueued_when_the_block_fails(app: Fenceline, worker: Worker) -> None:
    handlers(app)
    with pytest.raises(RuntimeError, match="in the block"):
        await enqueue_group(app, {}, error=RuntimeError("in the block"))
    with pytest.raises(InvalidArgs):
        await enqueue_group(app, {}, {"args": {"part": "not a number"}})
    # The database refuses one of them: none is there.
    with pytest.raises(MissingDependency):
        await enqueue_group(app, {}, {"after": [format_id(1)]})
    assert await worker.count_jobs() == 0


async def test_an_empty_group_is_a_mistake(app: Fenceline, worker: Worker) -> None:
    with pytest.raises(EmptyGroup, match="'nothing' has no jobs"):
        async with app.group("nothing"):
            pass
    with pytest.raises(EmptyGroup):
        async with app.group() as g:
            await g.then("whole")
    with pytest.raises(EmptyGroup, match="'nowhere' has no jobs"):
        await app.enqueue("whole", after={"group": "nowhere"})
    assert await worker.count_jobs() == 0


@pytest.mark.parametrize(
    "options, message",
    [
        ({"connection": object()}, r"app\.group\(\)"),
        ({"tenant": "another"}, "one tenant"),
    ],
)
async def test_options_that_have_no_place_in_a_group(app: Fenceline, options: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        async with app.group(tenant="acme") as g:
            await g.enqueue("part", {}, **options)


async def test_a_group_does_not_wait_for_itself(app: Fenceline, worker: Worker) -> None:
    async with app.group() as g:
        with pytest.raises(InvalidOption, match="use then"):
            await g.enqueue("part", after=g)
        await g.enqueue("part")
    with pytest.raises(DependencyCycle):
        async with app.group("round") as g:
            await g.enqueue("part", after={"group": "round"})
    with pytest.raises(InvalidOption, match="after= cannot be used"):
        async with app.group() as g:
            await g.then("whole", after=["x"])
    assert await worker.count_jobs() == 1


async def test_a_group_that_is_over_takes_no_more(app: Fenceline) -> None:
    async with app.group() as g:
        await g.enqueue("part")
    with pytest.raises(InvalidOption, match="has ended"):
        await g.enqueue("part")
    with pytest.raises(TimeoutError):
        await g.wait(0.2)


async def test_a_tenants_group(app: Fenceline, worker: Worker) -> None:
    async with app.group("same name", tenant="acme") as g:
        job = await g.enqueue("part")
        follower = await g.then("whole")
    async with app.group("same name", tenant="globex") as other:
        await other.enqueue("part")
    assert {(await made.get()).tenant for made in (job, follower)} == {"acme"}
    await worker.run(job)
    assert await follower.status() == "queued", "the group of the same name is another tenant's"


async def test_a_group_in_a_transaction_of_the_users(app: Fenceline, worker: Worker, connect: Connect) -> None:
    connection: asyncpg.Connection[asyncpg.Record] = await connect()
    transaction = connection.transaction()
    await transaction.start()
    async with app.group(connection=connection) as g:
        await g.enqueue("part")
        await g.then("whole")
    assert await worker.count_jobs() == 0
    await transaction.rollback()
    assert await worker.count_jobs() == 0
    async with connection.transaction(), app.group(connection=connection) as g:
        await g.enqueue("part")
    assert await worker.count_jobs() == 1


async def test_the_blocking_twin(app: Fenceline, worker: Worker) -> None:
    handlers(app)

    def enqueue() -> Any:
        with app.sync.group() as g:
            parts = g.enqueue_many("subtask", [{"part": 1}, {"part": 2}])
            whole = g.then("synthesize")
            g.enqueue("check", after=parts)
        with pytest.raises(EmptyGroup), app.sync.group():
            pass
        return g, parts, whole

    g, parts, whole = await asyncio.to_thread(enqueue)
    for job in parts:
        await worker.run(job)
    assert await asyncio.to_thread(whole.status) == "waiting"
    await worker.run(g.jobs[2])
    assert [str(s) for s in await asyncio.to_thread(g.wait, seconds_left())] == ["succeeded"] * 3
    assert await asyncio.to_thread(whole.status) == "queued"


async def test_a_large_group_is_still_one_statement(app: Fenceline, connect: Connect) -> None:
    async with app.group() as g:
        await g.enqueue_many("part", [{"n": n} for n in range(2000)])
        follower = await g.then("whole", policy="always")
    connection = await connect()
    row = await connection.fetchrow(
        "select cardinality(after) as parents, (select pending from fenceline.held where job_id = id) as pending "
        "from fenceline.job where id = $1",
        parse_id(follower.id),
    )
    assert row is not None
    assert tuple(row) == (2000, 2000)
