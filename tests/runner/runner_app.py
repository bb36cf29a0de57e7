"""Handlers for runner programs. The database is out of their reach."""

import os
import time
from pathlib import Path
from typing import Any

from fenceline import Context, Fenceline, SyncContext
from fenceline.worker import shutdown

shutdown.GOODBYE_SECONDS = 20.0  # however slow the machine is, the server hears of the end
app = Fenceline("postgresql://nobody@127.0.0.1:1/nowhere")


def note(word: str, job: str) -> None:
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(f"{word} {job} {os.getpid()}\n")


@app.job()
async def add(a: int, b: int) -> int:
    return a + b


@app.job()
async def fail() -> None:
    raise RuntimeError("no")


@app.job()
async def hang(seconds: float, ctx: Context) -> str:
    """Blocks the event loop."""
    note("start", ctx.job)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return "hung"


@app.job()
async def hang_until(gate: str) -> str:
    """Blocks the event loop until a file is there."""
    while not Path(gate).exists():  # noqa: ASYNC240 - as above
        time.sleep(0.05)  # noqa: ASYNC251 - as above
    return "hung"


@app.job()
def block(seconds: float, ctx: SyncContext) -> str:
    note("start", ctx.job)
    time.sleep(seconds)
    return "slept"


@app.job()
def block_until(gate: str, ctx: SyncContext) -> str:
    """Blocks its thread until a file is there."""
    note("start", ctx.job)
    while not Path(gate).exists():
        time.sleep(0.02)
    return "let go"


@app.job(isolated=True)
def apart(n: int, ctx: SyncContext) -> dict[str, Any]:
    ctx.log("from a process of its own", n=n)
    with ctx.lock("apart", 1):
        value = ctx.step("double", lambda: n * 2)
    return {"value": value, "pid": os.getpid()}


@app.job(isolated=True)
def die() -> None:
    os._exit(7)


@app.job()
def die_together(ctx: SyncContext) -> None:
    note("start", ctx.job)
    os.kill(os.getpid(), 9)
