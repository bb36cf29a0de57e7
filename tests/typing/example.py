"""The public surface as a user writes it; checked by mypy and pyright, both strict, never run."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

from fenceline import (
    BatchContext,
    BatchHandler,
    BatchItem,
    Context,
    Fenceline,
    Job,
    JobFailed,
    JobPage,
    JobRecord,
    Lane,
    LogLine,
    Progress,
    Retry,
    Status,
    SyncBatchContext,
    SyncContext,
    SyncJob,
)

app = Fenceline("postgresql://localhost/queue", pool_size=2)


@dataclass
class Report:
    rows: int


@app.job(
    kind="files.ingest", lane="interactive", timeout=600, retry=Retry(max_attempts=3, backoff="quadratic", base=2.0)
)
async def ingest(path: str, chunk: int = 1000) -> Report:
    return Report(rows=len(path) + chunk)


@app.job(priority=5)
def shrink(path: str, *, quality: float) -> bytes:
    return path.encode()[: int(quality)]


@app.job
async def count(ctx: Context, path: str, chunk: int = 1) -> dict[str, int]:
    child = await ctx.enqueue(ingest, {"path": path})
    assert_type(child, Job[Report])
    assert_type(await ctx.enqueue("files.ingest", {"path": path}), Job[Any])
    assert_type(await ctx.enqueue_many(ingest, [{"path": path}], after=child), list[Job[Report]])
    return {"rows": chunk}


@app.job(retry=5)
async def touch(ctx: Context, path: str) -> str:
    return path


@app.job
def compress(ctx: SyncContext, path: str, *, level: int = 3) -> str:
    assert_type(ctx.enqueue(ingest, {"path": path}), SyncJob[Report])
    assert_type(ctx.enqueue_many(ingest, [{"path": path}]), list[SyncJob[Report]])
    return path


@app.job
async def bare() -> None: ...


@app.job
async def vague(ctx: Context, options: dict[str, Any]) -> dict[str, Any]:
    return options


@app.job
def vaguer(ctx: SyncContext, value: Any, unit: str = "s") -> list[Any]:
    return [value, unit]


@app.job
async def vaguest(value: Any, unit: str = "s") -> dict[str, Any]:
    return {unit: value}


def refuse(path: str) -> None:
    raise ValueError(path)


@app.job(validate=refuse)
async def checked(path: str) -> None: ...


async def produce(connection: object) -> None:
    job = await ingest.enqueue(path="a")
    assert_type(job, Job[Report])
    assert_type(await job.result(timeout=30), Report)
    assert_type(await ingest.enqueue("a", 5), Job[Report])
    assert_type(await ingest.enqueue("a", chunk=5), Job[Report])
    assert_type(await (await shrink.enqueue("a", quality=0.5)).result(), bytes)
    assert_type(await (await count.enqueue("a")).result(), dict[str, int])
    assert_type(await count.enqueue(path="a", chunk=2), Job[dict[str, int]])
    assert_type(await touch.enqueue("a"), Job[str])
    assert_type(await touch.options(retry=3, priority=1).enqueue(path="a"), Job[str])
    assert_type(await compress.enqueue("a", level=9), Job[str])
    assert_type(await bare.enqueue(), Job[None])
    assert_type(await vague.enqueue(options={"a": 1}), Job[dict[str, Any]])
    assert_type(await vaguer.enqueue(1, unit="m"), Job[list[Any]])
    assert_type(await vaguest.enqueue(value=1, unit="m"), Job[dict[str, Any]])
    await checked.enqueue("a")

    optioned = ingest.options(
        run_at=datetime.now(UTC),
        priority=10,
        dedupe_key="k",
        key="acct:7",
        tenant="acme",
        labels={"project": "x"},
        after=[job, job.id],
        connection=connection,
    )
    assert_type(await optioned.enqueue(path="a"), Job[Report])
    assert_type(await ingest.options(after={"jobs": [job], "policy": "always"}).enqueue("a"), Job[Report])
    assert_type(await ingest.enqueue_many([{"path": "a"}, {"path": "b"}]), list[Job[Report]])
    assert_type(await ingest.enqueue_many({"path": text} for text in "ab"), list[Job[Report]])
    assert_type(await app.enqueue("files.ingest", {"path": "a"}, priority=3), Job[Any])
    assert_type(await app.enqueue(ingest, {"path": "a"}, priority=3), Job[Report])


@app.job(batch=100, batch_wait=1.0)
async def write(ctx: BatchContext, jobs: list[BatchItem[Report]]) -> None:
    async with ctx.transaction() as conn:
        await conn.execute("select 1")
    for item in jobs:
        assert_type(item.args, Report)
        assert_type(item.args.rows, int)
        assert_type(item.attempt, int)
        item.succeed({"rows": item.args.rows})
        item.fail(ValueError("no"))


@app.job(batch=10, retry=3, lane="bulk")
def write_blocking(ctx: SyncBatchContext, jobs: list[BatchItem[Report]]) -> None:
    with ctx.transaction() as conn:
        conn.execute("select 1")
    for item in jobs:
        assert_type(item.args, Report)


@app.job(batch=10)
async def write_plain(jobs: list[BatchItem[dict[str, int]]]) -> None:
    assert_type(jobs[0].args, dict[str, int])


@app.job(batch=10)
def write_plain_blocking(jobs: list[BatchItem[Report]]) -> None:
    assert_type(jobs[0].args, Report)


async def produce_for_batches() -> None:
    assert_type(write, BatchHandler[Report])
    assert_type(await write.enqueue(Report(rows=1)), Job[Any])
    assert_type(await write_blocking.options(priority=1).enqueue(Report(rows=1)), Job[Any])
    assert_type(await write.enqueue_many([Report(rows=1), {"rows": 2}]), list[Job[Any]])
    assert_type(write_plain_blocking.sync.enqueue(Report(rows=1)), SyncJob[Any])
    assert_type(await write_plain.enqueue({"rows": 1}), Job[Any])
    assert_type(await app.enqueue(write, {"rows": 1}), Job[Any])


async def together() -> None:
    async with app.group() as group:
        assert_type(await group.enqueue(ingest, {"path": "a"}), Job[Report])
        assert_type(await group.enqueue("files.ingest", {"path": "a"}), Job[Any])
        assert_type(await group.enqueue_many(count, [{"path": "a"}]), list[Job[dict[str, int]]])
        assert_type(await group.then(touch, {"path": "a"}, policy="always"), Job[str])


async def watch(job: Job[Report]) -> None:
    assert_type(job.id, str)
    assert_type(job.created, bool)
    assert_type(await job.status(), Status)
    assert_type(await job.get(), JobRecord)
    assert_type(await job.wait(10), Status)
    assert_type(await job.cancel("enough", force=True), Status)
    assert_type(await job.approve(), Status)
    assert_type(await job.reject("no", actor="ann"), Status)
    assert_type(await job.retry(), Job[Report])
    assert_type(await job.reprioritise(3), int)
    assert_type(await job.logs(limit=5), list[LogLine])
    assert_type(await job.progress(), Progress)
    await job.delete()
    try:
        rows = (await job.result()).rows
    except JobFailed as failed:
        assert_type(failed.error, dict[str, object] | None)
    else:
        assert_type(rows, int)


async def administer() -> None:
    page = await app.jobs.list(status=["failed", Status.CANCELLED], kind="ingest", labels={"a": "b"}, limit=10)
    assert_type(page, JobPage)
    assert_type(app.jobs.each(status="failed"), AsyncIterator[JobRecord])
    async for record in app.jobs.each():
        assert_type(record, JobRecord)
    assert_type(await app.lanes.list(), list[Lane])
    assert_type(await app.lanes.set("default", slots=None), Lane)
    assert_type(await app.system.depth(), int)
    await app.system.drain()
    await app.migrate()
    async with app:
        assert_type(await app.dsn(), str)


def block() -> None:
    job = ingest.sync.enqueue(path="a")
    assert_type(job, SyncJob[Report])
    assert_type(job.result(timeout=5), Report)
    assert_type(ingest.options(priority=1).sync.enqueue("a"), SyncJob[Report])
    assert_type(count.sync.enqueue("a"), SyncJob[dict[str, int]])
    assert_type(ingest.sync.enqueue_many([{"path": "a"}]), list[SyncJob[Report]])
    assert_type(app.sync.enqueue("other", {"n": 1}), SyncJob[Any])
    assert_type(app.sync.enqueue(ingest, {"path": "a"}), SyncJob[Report])
    assert_type(app.sync.jobs.list(), JobPage)
    app.sync.close()
