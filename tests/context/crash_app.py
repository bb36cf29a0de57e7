"""The application of the worker processes that these tests kill; copied into their folder."""

import asyncio
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import psycopg

from fenceline import BatchContext, BatchItem, Context, Fenceline, SyncBatchContext, SyncContext

app = Fenceline()
PAUSE = 0.03


def note(word: str) -> None:
    descriptor = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{word}\n".encode())
    os.close(descriptor)


# Exactly once --------------------------------------------------------------------------------------------------------


@app.job()
async def pay(ctx: Context, number: int) -> None:
    async with ctx.transaction() as conn:
        await conn.execute("insert into public.paid (job) values ($1)", str(number))
        await asyncio.sleep(PAUSE)
    await asyncio.sleep(PAUSE)  # dying here changes nothing


@app.job()
def pay_blocking(ctx: SyncContext, number: int) -> None:
    with ctx.transaction() as conn:
        conn.execute("insert into public.paid (job) values (%s)", (str(number),))
        time.sleep(PAUSE)
    time.sleep(PAUSE)


def until_the_gate_opens() -> None:
    while not Path("gate").exists():
        time.sleep(PAUSE)


@app.job()
async def pay_apart(number: int) -> None:
    """The same with the transaction taken out: the row is there before the job has ended."""
    connection = await asyncpg.connect(os.environ["FENCELINE_DSN"])
    await connection.execute("insert into public.paid (job) values ($1)", str(number))
    await connection.close()
    await asyncio.to_thread(until_the_gate_opens)


@app.job()
def pay_apart_blocking(number: int) -> None:
    with psycopg.connect(os.environ["FENCELINE_DSN"], autocommit=True) as connection:
        connection.execute("insert into public.paid (job) values (%s)", (str(number),))
    until_the_gate_opens()


@app.job(batch=20, batch_wait=0.05)
async def pay_together(ctx: BatchContext, jobs: list[BatchItem[dict[str, int]]]) -> None:
    async with ctx.transaction() as conn:
        for item in jobs:
            await conn.execute("insert into public.paid (job) values ($1)", str(item.args["number"]))
        await asyncio.sleep(PAUSE)
    await asyncio.sleep(PAUSE)


@app.job(batch=20, batch_wait=0.05)
def pay_together_blocking(ctx: SyncBatchContext, jobs: list[BatchItem[dict[str, int]]]) -> None:
    with ctx.transaction() as conn:
        for item in jobs:
            conn.execute("insert into public.paid (job) values (%s)", (str(item.args["number"]),))
        time.sleep(PAUSE)
    time.sleep(PAUSE)


# Steps ---------------------------------------------------------------------------------------------------------------


def take(step: str) -> str:
    note(step)
    return step


def wait_for(gate: str, ctx: Context | SyncContext) -> str:
    note(f"at {gate}")
    while not Path(gate).exists() and not ctx.shutting_down:
        time.sleep(0.02)
    return gate


async def walk_async(gate: str, *, ctx: Context) -> list[str]:
    return [
        await ctx.step("one", take, "one"),
        await ctx.step("two", asyncio.to_thread, wait_for, gate, ctx),
        await ctx.step("three", take, "three"),
    ]


def walk_def(gate: str, *, ctx: SyncContext) -> list[str]:
    return [ctx.step("one", take, "one"), ctx.step("two", wait_for, gate, ctx), ctx.step("three", take, "three")]


for shutdown in ("release", "fail"):
    options: dict[str, Any] = {"on_shutdown": shutdown}
    app.job(kind=f"walk.async.{shutdown}", **options)(walk_async)
    app.job(kind=f"walk.def.{shutdown}", **options)(walk_def)
    app.job(kind=f"walk.isolated.{shutdown}", isolated=True, **options)(walk_def)


# Waits ---------------------------------------------------------------------------------------------------------------


@app.job()
async def relay(*, ctx: Context) -> list[int]:
    """Notes each run of a step with the token of the attempt that ran it."""
    heard = []
    for turn in range(2):
        await ctx.step(f"step{turn}", partial(note, f"step{turn} {ctx.job_id} {ctx.token}"))
        heard.append(await ctx.wait_for("word"))
        await asyncio.sleep(PAUSE)
    return heard
