"""The application that worker processes of these tests run, copied into their folder.

Handlers write to a ledger that is independent of the queue: one line per start and end.
"""

import asyncio
import ctypes
import os
import signal
import time
from pathlib import Path

from fenceline import Fenceline
from fenceline.context.context import Context
from fenceline.worker import shutdown

app = Fenceline()
# However slow the machine is, the database hears of the end of a worker.
shutdown.GOODBYE_SECONDS = 20.0


def note(word: str, ctx: Context) -> None:
    line = f"{word} {ctx.job_id} {ctx.attempt_id} {ctx.token} {os.getpid()} {time.monotonic():.6f}\n"
    descriptor = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@app.job()
async def nap(ctx: Context, seconds: float = 0.0) -> int:
    note("start", ctx)
    await asyncio.sleep(seconds)
    note("end", ctx)
    return os.getpid()


@app.job()
async def carry(ctx: Context, load: str) -> int:
    note("start", ctx)
    await asyncio.sleep(0)
    note("end", ctx)
    return len(load)


@app.job()
def blocking_nap(ctx: Context, seconds: float = 0.0) -> int:
    note("start", ctx)
    time.sleep(seconds)
    note("end", ctx)
    return os.getpid()


@app.job(on_shutdown="fail")
def stubborn(ctx: Context, seconds: float) -> None:
    note("start", ctx)
    time.sleep(seconds)


@app.job()
async def block_the_loop(ctx: Context, seconds: float) -> None:
    note("start", ctx)
    time.sleep(seconds)  # noqa: ASYNC251 - the mistake that the test is about
    note("end", ctx)


@app.job()
async def hold_the_gil(ctx: Context, seconds: float) -> None:
    note("start", ctx)
    # PyDLL keeps the GIL during the call.
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1_000_000)))
    note("end", ctx)


@app.job()
async def block_the_loop_until_released(ctx: Context, gate: str) -> None:
    note("start", ctx)
    while not Path(gate).exists():  # noqa: ASYNC240 - the mistake that the test is about
        time.sleep(0.02)  # noqa: ASYNC251 - the mistake that the test is about
    note("end", ctx)


@app.job()
async def hold_the_gil_until_released(ctx: Context, pipe: str) -> None:
    """Runs until somebody opens the named pipe for writing."""
    note("start", ctx)
    # PyDLL keeps the GIL during the call.
    ctypes.PyDLL(None).open(pipe.encode(), os.O_RDONLY)
    note("end", ctx)


@app.job()
def until_own_gate(ctx: Context, gate: str) -> int:
    """Runs until there is a file for this very attempt."""
    note("start", ctx)
    while not Path(f"{gate}{ctx.token}").exists():
        time.sleep(0.02)
    note("end", ctx)
    return os.getpid()


@app.job()
async def kill_the_process(ctx: Context, how: str = "kill") -> None:
    note("start", ctx)
    if how == "abort":
        os.abort()
    os.kill(os.getpid(), signal.SIGKILL)


@app.job()
async def until_released(ctx: Context, gate: str) -> None:
    """Runs until the file exists."""
    note("start", ctx)
    while not Path(gate).exists():  # noqa: ASYNC240, ASYNC110 - a look at a file, in a test
        await asyncio.sleep(0.02)
    note("end", ctx)


@app.job()
async def until_shut_down(ctx: Context) -> None:
    """Ends well once its worker has begun to stop."""
    note("start", ctx)
    while not ctx.shutting_down:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.02)
    note("end", ctx)


@app.job()
async def fail(ctx: Context) -> None:
    raise RuntimeError("on purpose")
