"""The application that the demo's workers run. Its handlers write to a ledger of which the queue knows nothing."""

import asyncio
import os
import time

from fenceline.app import Fenceline
from fenceline.context.context import Context

LEDGER_VARIABLE = "FENCELINE_DEMO_LEDGER"

app = Fenceline()


def note(word: str, ctx: Context) -> None:
    """One line, in one write that appends: lines of several processes do not mix."""
    line = f"{word} {ctx.job_id} {ctx.attempt_id} {ctx.token} {os.getpid()} {time.monotonic():.6f}\n"
    ledger = os.open(os.environ[LEDGER_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line.encode())
    finally:
        os.close(ledger)


async def work(seconds: float, ctx: Context) -> str:
    note("start", ctx)
    await asyncio.sleep(seconds)
    note("end", ctx)
    return str(ctx.attempt_id)  # so that the queue's word on who did the job can be checked


@app.job(kind="demo.quick", lane="demo")
async def quick(ctx: Context, seconds: float) -> str:
    return await work(seconds, ctx)


@app.job(kind="demo.slow", lane="demo.slow")
async def slow(ctx: Context, seconds: float) -> str:
    return await work(seconds, ctx)
