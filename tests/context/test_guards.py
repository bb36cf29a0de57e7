"""`ctx.guard_newer` in the transaction that writes: a version counts when it was written, not when it was announced."""

from typing import Any

import pytest
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline, Retry, SyncContext

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(database: str) -> Fenceline:
    app = Fenceline(database)

    @app.job(retry=ONCE)
    async def publish(ctx: Context, version: int, fail: bool = False) -> Any:  # noqa: FBT001, FBT002 - args of a job
        async with ctx.transaction() as conn:
            await ctx.guard_newer("page", version)
            conn.result = version
            if fail:
                raise RuntimeError("the write failed")

    @app.job(retry=ONCE)
    def publish_blocking(ctx: SyncContext, version: int, fail: bool = False) -> Any:  # noqa: FBT001, FBT002 - as above
        with ctx.transaction() as conn:
            ctx.guard_newer("page", version)
            conn.result = version
            if fail:
                raise RuntimeError("the write failed")

    return app


@pytest.mark.parametrize("kind", ["publish", "publish_blocking"])
async def test_a_version_that_was_not_written_does_not_count(app: Fenceline, kind: str) -> None:
    async with running(app):
        failed = await ended(await app.enqueue(kind, {"version": 3, "fail": True}))
        assert failed.status == "failed"
        assert await (await app.enqueue(kind, {"version": 2})).result(seconds_left()) == 2
        older = await ended(await app.enqueue(kind, {"version": 1}))
        assert older.error is not None
        assert (older.status, older.error["code"]) == ("cancelled", "superseded")
