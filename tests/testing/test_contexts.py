"""`make_context`: a real attempt, for a handler that is called directly."""

from typing import Any

import pytest

from fenceline import Cancelled, Context, SyncContext
from fenceline.client.app_parts import app_parts
from fenceline.testing import FakeCredentials, TestedApp


async def test_what_the_handler_writes_is_in_the_database(app: TestedApp) -> None:
    @app.job
    async def load(ctx: Context, rows: int) -> int:
        ctx.log("loading", rows=rows)
        async with ctx.phase("count"), ctx.lock("table", 1):
            await ctx.progress(rows, rows)
        return await ctx.step("double", lambda: rows * 2)

    ctx = await app.make_context(load, {"rows": 4}, attempt=3, tenant="acme", labels={"a": "b"})
    assert await load(ctx, rows=4) == 8
    await ctx.flush()
    job = app.jobs.handle(ctx.job)
    record = await job.get()
    assert (record.phase, record.progress["done"]) == ("count", 4)
    assert [step.name for step in await job.steps()] == ["double"]
    assert [line.message for line in await job.logs()] == ["loading"]
    assert (ctx.attempt, ctx.tenant, ctx.job.labels) == (3, "acme", {"a": "b"})


async def test_a_checkpoint_a_cancel_and_credentials(app: TestedApp) -> None:
    @app.job
    async def work(ctx: Context) -> Any: ...

    app_parts(app).credential_provider = FakeCredentials({"broken": PermissionError("no")}, key="made-up")
    ctx = await app.make_context(work, resume={"page": 3}, cancelled=True, identity="deployer")
    assert ctx.resume == {"page": 3}
    assert ctx.credentials["key"] == "made-up"
    with pytest.raises(Cancelled):
        ctx.raise_if_cancelled()
    with pytest.raises(Exception, match="PermissionError"):
        await app.make_context(work, identity="broken")


async def test_it_takes_its_own_job_and_no_other(app: TestedApp) -> None:
    @app.job
    async def work(ctx: Context, number: int) -> int:
        return number

    waiting = await work.options(priority=9).enqueue(number=1)
    ctx = await app.make_context(work, {"number": 2})
    assert ctx.job.args == {"number": 2}
    assert await waiting.status() == "queued"


async def test_a_job_that_cannot_run_now_is_told(app: TestedApp) -> None:
    @app.job
    async def work(ctx: Context) -> None: ...

    with pytest.raises(Exception, match="is scheduled and cannot be run now"):
        await app.make_context(work, run_in=60)


async def test_a_def_handler_has_a_context_that_blocks(app: TestedApp) -> None:
    @app.job
    def load(ctx: SyncContext, rows: int) -> int:
        with ctx.phase("count"), ctx.lock("table", 1):
            ctx.progress(rows, rows)
        return ctx.step("double", lambda: rows * 2)

    @app.job
    def pay(ctx: SyncContext) -> str:
        with ctx.transaction() as conn:
            conn.execute("create table paid (job text)")
            conn.result = "paid"
        return "ignored"

    with pytest.raises(TypeError, match=r"load is a def handler: .* fenceline_app\.sync\.make_context"):
        await app.make_context(load, {"rows": 4})
    await app.assert_enqueued("load", count=0)
    ctx = app.sync.make_context(load, {"rows": 4}, attempt=2)
    assert (load(ctx, rows=4), ctx.attempt) == (8, 2)
    assert [step.name for step in await app.jobs.handle(ctx.job).steps()] == ["double"]
    paying = app.sync.make_context("pay")
    pay(paying)
    assert await app.jobs.handle(paying.job).result() == "paid"
