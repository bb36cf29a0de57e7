"""The application of the worker processes that these tests kill; copied into their folder."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import asyncpg
import psycopg

from fenceline import Context, Fenceline, SyncContext

app = Fenceline()
PAUSE = 0.03


def note(word: str) -> None:
    descriptor = os.open("notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{word}\n".encode())
    os.close(descriptor)


# Exactly once --------------------------------------------------------------------------------------------------------


@app.job()
async def pay(number: int, *, ctx: Context) -> None:
    async with ctx.transaction() as conn:
        await conn.execute("insert into public.paid (job) values ($1)", str(number))
        await asyncio.sleep(PAUSE)
    await asyncio.sleep(PAUSE)  # dying here changes nothing


@app.job()
def pay_blocking(number: int, *, ctx: SyncContext) -> None:
    with ctx.transaction() as conn:
        conn.execute("insert into public.paid (job) values (%s)", (str(number),))
        time.sleep(PAUSE)
    time.sleep(PAUSE)


@app.job()
async def pay_apart(number: int) -> None:
    """The same with the transaction taken out: the row is there before the job has ended."""
    connection = await asyncpg.connect(os.environ["FENCELINE_DSN"])
    await connection.execute("insert into public.paid (job) values ($1)", str(number))
    await connection.close()
    await asyncio.sleep(2 * PAUSE)


@app.job()
def pay_apart_blocking(number: int) -> None:
    with psycopg.connect(os.environ["FENCELINE_DSN"], autocommit=True) as connection:
        connection.execute("insert into public.paid (job) values (%s)", (str(number),))
    time.sleep(2 * PAUSE)


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
