"""Handlers that the tests of isolated execution run in processes of their own."""

import asyncio
import logging
import os
import time
from typing import Any

from fenceline import Fenceline, Retry
from fenceline.context.context import Context
from fenceline.context.log_lines import current_session

app = Fenceline()
started = {"isolated": 0}
released = asyncio.Event()  # ends the bystander, which runs in the worker's own process
ONCE = Retry(max_attempts=1)


@app.on_startup
def note_start() -> None:
    started["isolated"] += 1


@app.middleware
async def note_kind(ctx: Context, call_next: Any) -> Any:
    ctx.log("before", kind=ctx.kind)
    return await call_next(ctx)


@app.job(isolated=True)
def who() -> dict[str, int]:
    return {"pid": os.getpid(), "started": started["isolated"]}


@app.job(isolated=True)
async def talk(ctx: Context, text: str) -> dict[str, Any]:
    ctx.log(text, worth=float("nan"), odd="\x00")
    logging.getLogger("tests.isolated").warning("said %s", text)
    await asyncio.sleep(0)
    assert current_session.get() is ctx._session
    return {"attempt": ctx.attempt, "token": ctx.token, "job": ctx.job, "text": text}


@app.job(isolated=True)
def echo(text: str) -> str:
    return text


@app.job(isolated=True, retry=ONCE)
def fail() -> None:
    raise LookupError("not there")


@app.job(isolated=True, retry=ONCE)
def leave() -> None:
    raise SystemExit(3)


@app.job(isolated=True)
def abort() -> None:
    os.abort()


@app.job(isolated=True, retry=ONCE)
def sleep_for_ever() -> None:
    while True:
        time.sleep(0.01)


@app.job(isolated=True, memory_limit_mb=200, retry=ONCE)
def hoard(megabytes: int) -> int:
    return len(bytearray(megabytes * 2**20))


@app.job(isolated=True)
def stop_when_asked(ctx: Context) -> str:
    while not ctx.cancelled:
        time.sleep(0.01)
    ctx.log("kept what was done")
    ctx.raise_if_cancelled()
    return "not reached"


@app.job(isolated=True)
async def wait_for_ever() -> None:
    await asyncio.sleep(3600)


@app.job()
async def bystander() -> int:
    await released.wait()
    return os.getpid()
