"""Mistakes that a type checker must find: each line with `# E: [mypy's code]`, and no other. Never run."""

from datetime import UTC, datetime
from typing import Any

from fenceline import BatchContext, BatchItem, Context, Fenceline, Retry, SyncContext

app = Fenceline()


@app.job
async def ingest(ctx: Context, path: str, chunk: int = 1000) -> int:
    return len(path) + chunk


@app.job()
def shrink(ctx: SyncContext, path: str, *, quality: float) -> bytes:
    return path.encode()[: int(quality)]


@app.job
async def vague(ctx: Context, value: Any, unit: str = "s") -> dict[str, Any]:
    return {unit: value}


@app.job
def vaguer(value: Any, unit: str = "s") -> dict[str, Any]:
    return {unit: value}


async def enqueue() -> None:
    await ingest.enqueue()  # E: [call-arg]
    await ingest.enqueue(path=5)  # E: [arg-type]
    await ingest.enqueue("a", "b")  # E: [arg-type]
    await ingest.enqueue("a", 1, 2)  # E: [call-arg]
    await ingest.enqueue(path="a", chnk=1)  # E: [call-arg]
    await ingest.enqueue("a", ctx=None)  # E: [call-arg]
    await ingest.options(priority=1).enqueue(path=5)  # E: [arg-type]
    await shrink.enqueue("a")  # E: [call-arg]
    await shrink.enqueue(None, "a", quality=1.0)  # E: [misc, arg-type]
    ingest.sync.enqueue(path=None)  # E: [arg-type]
    shrink.sync.enqueue("a", quality="high")  # E: [arg-type]
    await ingest.enqueue_many(["a"])  # E: [list-item]
    await vague.enqueue()  # E: [call-arg]
    await vague.enqueue(1, unit=2)  # E: [arg-type]
    await vague.enqueue(1, "m", 2)  # E: [call-arg]
    await vaguer.enqueue(unit="m")  # E: [call-arg]


async def options() -> None:
    ingest.options(prioritty=1)  # E: [call-arg]
    ingest.options(priority="high")  # E: [arg-type]
    ingest.options(run_at="tomorrow")  # E: [arg-type]
    ingest.options(labels={"a": 1})  # E: [dict-item]
    ingest.options(retry="3")  # E: [arg-type]
    await app.enqueue("ingest", {"path": "a"}, lane=5)  # E: [call-overload]
    await app.enqueue("ingest", ["a"])  # E: [call-overload]
    Retry(backoff="cubic")  # E: [arg-type]


async def results() -> None:
    job = await ingest.enqueue("a")
    text: str = await job.result()  # E: [assignment]
    again: str = await (await job.retry()).result()  # E: [assignment]
    blocked: str = ingest.sync.enqueue("a").result()  # E: [assignment]
    await job.reprioritise("high")  # E: [arg-type]
    await job.result("soon")  # E: [arg-type]
    await app.jobs.list(created_after=str(datetime.now(UTC)))  # E: [arg-type]
    child: str = await (await app.enqueue(ingest, {"path": "a"})).result()  # E: [assignment]
    job.id = child + text + again + blocked  # E: [misc]


def decorate() -> None:
    app.job(retry="3")  # E: [call-overload]
    app.job(timeout="1h")  # E: [call-overload]
    app.job()(5)  # E: [call-overload]


@app.job(batch=10)
async def write(ctx: BatchContext, jobs: list[BatchItem[dict[str, int]]]) -> None:
    number: str = jobs[0].args["rows"]  # E: [assignment]
    await ctx.step(number, len, "a")  # E: [attr-defined]
    jobs[0].fail(5)  # E: [arg-type]
    await write.enqueue("a")  # E: [arg-type]
    await write.enqueue({"rows": "many"})  # E: [dict-item]


@app.job(kind="again")
async def parent(ctx: Context) -> None:
    child = await ctx.enqueue(ingest, {"path": "a"})
    text: str = await child.result()  # E: [assignment]
    async with app.group() as group:
        await group.then(ingest, policy="never")  # E: [arg-type]
    await ctx.progress(message=text)
    await ctx.enqueue(5)  # E: [arg-type]
    await parent.enqueue(ctx)  # E: [call-arg]
