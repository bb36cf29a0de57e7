"""Mistakes that a type checker must find: each line with `# E: [code]`, and no other. Never run."""

from datetime import UTC, datetime

from fenceline import Fenceline, Retry

app = Fenceline()


class Context: ...


@app.job()
async def ingest(path: str, chunk: int = 1000, *, ctx: Context) -> int:
    return len(path) + chunk


@app.job()
def shrink(ctx: Context, path: str, *, quality: float) -> bytes:
    return path.encode()[: int(quality)]


async def enqueue() -> None:
    await ingest.enqueue()  # E: [call-arg]
    await ingest.enqueue(path=5)  # E: [arg-type]
    await ingest.enqueue("a", "b")  # E: [arg-type]
    await ingest.enqueue("a", 1, 2)  # E: [call-arg]
    await ingest.enqueue(path="a", chnk=1)  # E: [call-arg]
    await ingest.enqueue("a", ctx=Context())  # E: [call-arg]
    await ingest.options(priority=1).enqueue(path=5)  # E: [arg-type]
    await shrink.enqueue("a")  # E: [call-arg]
    await shrink.enqueue(Context(), "a", quality=1.0)  # E: [misc, arg-type]
    ingest.sync.enqueue(path=None)  # E: [arg-type]
    shrink.sync.enqueue("a", quality="high")  # E: [arg-type]
    await ingest.enqueue_many(["a"])  # E: [list-item]


async def options() -> None:
    ingest.options(prioritty=1)  # E: [call-arg]
    ingest.options(priority="high")  # E: [arg-type]
    ingest.options(run_at="tomorrow")  # E: [arg-type]
    ingest.options(labels={"a": 1})  # E: [dict-item]
    ingest.options(retry=3)  # E: [arg-type]
    await app.enqueue("ingest", {"path": "a"}, lane=5)  # E: [arg-type]
    await app.enqueue("ingest", ["a"])  # E: [arg-type]
    Retry(backoff="cubic")  # E: [arg-type]


async def results() -> None:
    job = await ingest.enqueue("a")
    text: str = await job.result()  # E: [assignment]
    again: str = await (await job.retry()).result()  # E: [assignment]
    blocked: str = ingest.sync.enqueue("a").result()  # E: [assignment]
    await job.reprioritise("high")  # E: [arg-type]
    await job.result("soon")  # E: [arg-type]
    await app.jobs.list(created_after=str(datetime.now(UTC)))  # E: [arg-type]
    job.id = text + again + blocked  # E: [misc]


def decorate() -> None:
    app.job(retry=3)  # E: [arg-type]
    app.job(timeout="1h")  # E: [arg-type]
    app.job()(5)  # E: [call-overload]
