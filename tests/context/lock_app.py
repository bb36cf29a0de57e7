"""The application that worker processes of test_lock_processes.py run, copied into their folder.

Whoever is inside a lock writes so to a file that is independent of the queue, one line per coming and going.
"""

import asyncio
import os
import time
from pathlib import Path

from fenceline import Context, Fenceline, Retry, StaleAttempt, SyncContext

app = Fenceline()


def note(word: str, lock: object, ctx: Context | SyncContext) -> None:
    line = f"{word} {lock} {ctx.job_id} {ctx.attempt} {os.getpid()} {time.monotonic():.6f}\n"
    descriptor = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@app.job()
async def edit(ctx: Context, edition: int) -> None:
    async with ctx.lock("edition", edition):
        note("in", edition, ctx)
        await asyncio.sleep(0.002)
        note("out", edition, ctx)


@app.job()
def edit_blocking(ctx: SyncContext, edition: int) -> None:
    with ctx.lock("edition", edition):
        note("in", edition, ctx)
        time.sleep(0.002)
        note("out", edition, ctx)


@app.job(isolated=True)
def edit_isolated(ctx: SyncContext, edition: int) -> None:
    with ctx.lock("edition", edition):
        note("in", edition, ctx)
        time.sleep(0.002)
        note("out", edition, ctx)


@app.job(isolated=True)
async def edit_isolated_async(ctx: Context, edition: int) -> None:
    async with ctx.lock("edition", edition):
        note("in", edition, ctx)
        await asyncio.sleep(0.002)
        note("out", edition, ctx)


def stay(ctx: SyncContext, edition: int) -> None:
    with ctx.lock("edition", edition):
        note("in", edition, ctx)
        time.sleep(3600)


app.job(kind="stay_isolated", isolated=True, retry=Retry(max_attempts=1))(stay)
#: Longer than its process needs to start and to have the lock, unless the machine is very busy.
app.job(kind="stay_isolated_for_seconds", isolated=True, timeout=4.0, retry=Retry(max_attempts=1))(stay)


@app.job(retry=Retry(max_attempts=3, base=0))
async def hold_first(ctx: Context, edition: int, gate: str) -> None:
    """Its first attempt stays in the block until the gate is there; later ones only pass through."""
    async with ctx.lock("edition", edition):
        note("in", edition, ctx)
        while ctx.attempt == 1 and not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 - a look at a file, in a test
            await asyncio.sleep(0.02)
        try:
            await ctx.checkpoint({"by": ctx.attempt})
        except StaleAttempt:
            note("stale", edition, ctx)
            raise
        note("out", edition, ctx)


@app.job()
async def guarded(ctx: Context, version: int) -> None:
    """Writes its version to the end of the file, unless a newer one was announced."""
    async with ctx.lock("page", 1):
        await ctx.guard_newer("page:1", version)
        note("wrote", version, ctx)
