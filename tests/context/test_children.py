"""`ctx.enqueue`: children come to be with the good end of their parent, or not at all."""

from typing import Any

import pytest
from tests.conftest import Connect
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended

from fenceline import Context, Fenceline, FencelineError, Retry
from fenceline.client.app_parts import app_parts

anyhow = pytest.mark.parametrize("flavour", FLAVOURS)
AGAIN = Retry(max_attempts=2, backoff="fixed", base=0.0, jitter=0.0)


@anyhow
async def test_children_exist_when_their_parent_has_succeeded(app: Fenceline, work: Work, flavour: str) -> None:
    async with work():
        job = await app.enqueue(f"parent.{flavour}", {"succeeds_at": 2}, tenant="acme")
        ids = await job.result(timeout=seconds_left())
        children = [await ended(app.jobs.handle(child)) for child in ids]
        listed = (await app.jobs.list(kind="child")).items
        failed = await app.enqueue(f"parent.{flavour}", {"succeeds_at": 9}, tenant="acme")
        assert (await ended(failed)).status == "failed"
        assert len((await app.jobs.list(kind="child")).items) == len(listed) == 4, "once, and none of a failure"
    assert [child.result for child in children] == [1, 2, 3, 4]
    assert {child.parent for child in children} == {job.id}
    assert {child.tenant for child in children} == {"acme"}
    assert [child.priority for child in children] == [0, 0, 5, 5]
    assert children[1].labels == {"of": "parent"}
    first, second = children[0].finished_at, children[1].claimed_at
    assert first is not None
    assert second is not None
    assert first <= second, "the second waits for the first"


async def test_children_are_refused_early_where_that_can_be_told(app: Fenceline, work: Work) -> None:
    seen: list[str] = []

    @app.job()
    async def bad(ctx: Context) -> None:
        for arguments in (
            {"kind": "child", "args": {"number": "many"}},
            {"kind": "unknown_here", "args": {"number": object()}},
            {"kind": "child", "args": {"number": 1}, "tenant": "other"},
            {"kind": "child", "args": {"number": 1}, "priority": 10**9},
            {"kind": "not a name", "args": {}},
            {"kind": "child", "args": {"number": 1}, "connection": object()},
            {"kind": "child", "args": {"number": 1}, "lane": "nowhere"},
            {"kind": "unknown_here", "args": {"text": "\0"}},
        ):
            options: dict[str, Any] = dict(arguments)
            try:
                await ctx.enqueue(options.pop("kind"), options.pop("args"), **options)
            except (FencelineError, ValueError) as error:
                seen.append(f"{type(error).__name__}: {error}".partition("\n")[0])
        assert await ctx.enqueue_many("child", []) == []

    async with work():
        assert (await ended(await app.enqueue("bad"))).status == "succeeded"
        assert (await app.jobs.list(kind="child")).items == []
    assert [line.partition(":")[0] for line in seen] == [
        "InvalidArgs",
        "InvalidArgs",
        "InvalidOption",
        "InvalidPriority",
        "InvalidName",
        "InvalidOption",
        "UnknownLane",
        "InvalidJson",
    ]
    assert "a child belongs to the tenant of its parent, 'default', not to 'other'" in seen[2]


@pytest.mark.parametrize("in_transaction", [False, True])
async def test_a_child_that_cannot_be_made_fails_its_parent_alone(
    app: Fenceline, work: Work, connect: Connect, *, in_transaction: bool
) -> None:
    connection = await connect()

    @app.job(retry=AGAIN)
    async def parent(ctx: Context, *, lock: bool) -> None:
        if lock:
            await ctx.enqueue("child", {"number": 1}, resource_lock="printer")
        else:
            await ctx.enqueue("child", {"number": 2})
        if in_transaction:
            async with ctx.transaction() as conn:
                await conn.execute("insert into public.paid (job) values ($1)", ctx.job.id)

    holder = await app.enqueue("elsewhere", {}, resource_lock="printer")
    async with work():
        jobs = await parent.enqueue_many([{"lock": lock} for lock in (False, True, False)])
        records = [await ended(job) for job in jobs]
        assert [record.status for record in records] == ["succeeded", "failed", "succeeded"]
        assert records[1].error is not None
        assert records[1].error["code"] == "resource_locked"
        assert records[1].attempt == 2, "it may be free the next time"
        await holder.cancel()
        assert (await ended(await jobs[1].retry())).status == "succeeded"
        assert await connection.fetchval("select count(*) from public.paid") == (3 if in_transaction else 0)
    assert await connection.fetchval("select count(*) from fenceline.child") == 0


async def test_children_have_snapshots_and_defaults_of_their_own(app: Fenceline, work: Work) -> None:
    @app.job(priority=4)
    async def planned(name: str) -> None: ...

    @planned.snapshot
    def configuration(name: str) -> dict[str, str]:
        return {"for": name}

    @app.job()
    async def parent(ctx: Context) -> list[str]:
        jobs = await ctx.enqueue_many(planned, [{"name": "a"}, {"name": "b"}])
        jobs.append(await ctx.enqueue(planned, {"name": "c"}, snapshot="given"))
        return [job.id for job in jobs]

    async with work():
        ids = await (await parent.enqueue()).result(timeout=seconds_left())
        connection = await app_parts(app).database().connect()
        rows = await connection.fetch(
            "select snapshot #>> '{}' as snapshot, priority from fenceline.job where id = "
            "any(select fenceline.parse_public_id(i) from unnest($1::text[]) i) order by id",
            ids,
        )
        await connection.close()
    assert [row["snapshot"] for row in rows] == ['{"for": "a"}', '{"for": "b"}', "given"]
    assert {row["priority"] for row in rows} == {4}


async def test_two_parents_make_one_child_with_an_idempotency_key(app: Fenceline, work: Work) -> None:
    @app.job()
    async def twin(ctx: Context) -> str:
        return (await ctx.enqueue("child", {"number": 1}, idempotency_key="k")).id

    async with work():
        for _ in range(2):
            assert (await ended(await app.enqueue(twin))).status == "succeeded"
        [child] = (await app.jobs.list(kind="child")).items
        assert (await ended(app.jobs.handle(child.id))).result == 1


async def test_another_job_with_the_dedupe_key_takes_the_childs_place(app: Fenceline, work: Work) -> None:
    children: list[Any] = []

    @app.job()
    async def plan(ctx: Context) -> None:
        first = await ctx.enqueue("child", {"number": 1}, dedupe_key="k")
        children.append(await ctx.enqueue("child", {"number": 2}, after=[first]))
        children.append(await ctx.enqueue("child", {"number": 3}, after={"jobs": [first.id], "policy": "always"}))

    await app.lanes.create("shut", enabled=False)
    other = await app.enqueue("child", {"number": 9}, dedupe_key="k", lane="shut")
    async with work():
        assert (await ended(await app.enqueue("plan"))).error is None
        assert [(await child.get()).waiting_for for child in children] == ["dependencies", "dependencies"]
        await app.lanes.resume("shut")
        assert [await child.result(timeout=seconds_left()) for child in children] == [2, 3]
        assert await other.result(timeout=seconds_left()) == 9
