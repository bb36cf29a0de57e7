"""The public surface as a user writes it; checked by `mypy --strict`, with the plugin, never run."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

from fenceline import (
    Fenceline,
    Handler,
    Job,
    JobFailed,
    JobPage,
    JobRecord,
    Lane,
    LogLine,
    Progress,
    Retry,
    Status,
    SyncJob,
)

app = Fenceline("postgresql://localhost/queue", pool_size=2)


class Context:
    """Stands for any type of context: the parameter's name decides."""


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


@app.job()
async def with_keyword_context(path: str, chunk: int = 1, *, ctx: Context) -> dict[str, int]:
    return {"rows": chunk}


@app.job()
async def with_first_context(ctx: Context, path: str) -> str:
    return path


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
    assert_type(await (await with_keyword_context.enqueue("a")).result(), dict[str, int])
    assert_type(await with_keyword_context.enqueue(path="a", chunk=2), Job[dict[str, int]])
    assert_type(await with_first_context.enqueue("a"), Job[str])
    assert_type(await with_first_context.enqueue(path="a"), Job[str])
    await with_keyword_context("a", ctx=Context())
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
        assert_type(app.handlers, dict[str, Handler[Any, Any]])


def block() -> None:
    job = ingest.sync.enqueue(path="a")
    assert_type(job, SyncJob[Report])
    assert_type(job.result(timeout=5), Report)
    assert_type(ingest.options(priority=1).sync.enqueue("a"), SyncJob[Report])
    assert_type(with_keyword_context.sync.enqueue("a"), SyncJob[dict[str, int]])
    assert_type(ingest.sync.enqueue_many([{"path": "a"}]), list[SyncJob[Report]])
    assert_type(app.sync.enqueue("other", {"n": 1}), SyncJob[Any])
    assert_type(app.sync.jobs.list(), JobPage)
    app.sync.close()
