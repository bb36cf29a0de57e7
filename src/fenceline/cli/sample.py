"""The sample application of `fenceline up`: a few jobs that show what the queue does."""

import asyncio
import logging

from fenceline.app import Fenceline
from fenceline.client.job import Job
from fenceline.context.context import Context
from fenceline.model.retry import Retry

app = Fenceline()
log = logging.getLogger("sample")


@app.job
async def greet(name: str) -> str:
    return f"hello {name}"


@app.job(lane="interactive", retry=Retry(max_attempts=3, backoff="fixed", base=0.3))
async def flaky(ctx: Context, path: str) -> dict[str, str]:
    """Fails the first time, to show a retry."""
    log.info("reading %s, attempt %s", path, ctx.attempt)
    await asyncio.sleep(0.2)
    if ctx.attempt == 1:
        raise ConnectionError(f"{path} is not there yet")
    return {"path": path}


@app.job(lane="maintenance")
def compact(table: str) -> int:
    """Runs one at a time, in order: its lane has one slot."""
    return len(table)


async def enqueue_sample() -> list[Job[object]]:
    """One of each: plain, retried, serial, waiting for others, and one that waits for you."""
    greetings = await greet.enqueue_many([{"name": name} for name in ("ada", "grace", "edsger")])
    shaky = await flaky.enqueue(path="s3://bucket/report.csv")
    tables = await compact.enqueue_many([{"table": name} for name in ("orders", "events")])
    last = await greet.options(after=[*greetings, shaky]).enqueue(name="everybody")
    approval = await greet.options(needs_approval=True).enqueue(name="the one who approves")
    return [*greetings, shaky, *tables, last, approval]
