"""Handlers for the tests of a worker's log."""

import os

from fenceline import Context, Fenceline, Retry
from fenceline.context.sync_context import SyncContext

app = Fenceline()
SOON = Retry(max_attempts=2, backoff="fixed", base=0.2)


@app.job(retry=SOON)
async def fail(word: str) -> None:
    raise ValueError(f"no {word}")


@app.job(retry=SOON)
def fail_blocking(word: str) -> None:
    raise ValueError(f"no {word}")


@app.job(retry=SOON, isolated=True)
def fail_isolated(word: str) -> None:
    raise ValueError(f"no {word}")


@app.job(isolated=True)
def abort() -> None:
    os.abort()


@app.job
async def kill() -> None:
    os.abort()


@app.job
async def talk(ctx: Context) -> None:
    ctx.log("half way", shelf=3)


@app.job(isolated=True)
def talk_isolated(ctx: SyncContext) -> None:
    ctx.log("half way", shelf=3, level="warning")
