"""The app, and the tables of the gateway beside the queue's, in the same database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from fenceline import Fenceline

app = Fenceline()

TABLES = """
select pg_advisory_xact_lock(hashtext('agent_gateway'));
create schema if not exists gateway;
create table if not exists gateway.message (
  job text primary key, session_id text not null, user_id text not null, channel text not null, text text not null,
  reply text not null, at timestamptz not null default clock_timestamp()
);
create table if not exists gateway.tool_event (
  job text primary key, session_id text not null, tool text not null, milliseconds double precision not null
);
create table if not exists gateway.memory (
  id bigint generated always as identity primary key, text text not null, vector double precision[]
);
create table if not exists gateway.provider (
  url text primary key, models text[] not null, healthy boolean not null, checked_at timestamptz not null
);
"""
INSERT_MESSAGE = "insert into gateway.message values ($1, $2, $3, $4, $5, $6)"


@asynccontextmanager
async def connection() -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """For reads, and writes that may be done again. What belongs to a job's end is written in `ctx.transaction()`."""
    opened = await asyncpg.connect(await app.dsn())
    try:
        yield opened
    finally:
        await opened.close()


@app.on_startup
async def create_tables() -> None:
    async with connection() as conn, conn.transaction():
        await conn.execute(TABLES)
