"""What a worker costs a database: connections, and statements while there is nothing to do."""

import asyncio
import time
from collections import Counter

import pytest
from tests.support.figures import Figures
from tests.worker.fleet import Fleet, until

IDLE_SECONDS = 8.0


async def sessions(fleet: Fleet) -> set[int]:
    rows = await fleet.connection.fetch(
        "select pid from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
    )
    return {row["pid"] for row in rows}


async def connections(fleet: Fleet) -> int:
    """How many there are; the server shows one that is closed until its session has ended."""
    before = await sessions(fleet)
    await asyncio.sleep(0.05)
    return len(before & await sessions(fleet))


async def most_connections(fleet: Fleet, jobs: int) -> int:
    """At one time, until so many jobs have ended."""
    most = 0

    async def ended() -> bool:
        nonlocal most
        most = max(most, await connections(fleet))
        return int(await fleet.scalar("select count(*) from fenceline.history where final")) >= jobs

    await until(ended, f"{jobs} jobs have ended")
    return most


async def test_a_child_has_at_most_three_connections(fleet: Fleet) -> None:
    await fleet.started("--concurrency", "20")
    await fleet.waiting("default")
    one_child = await connections(fleet)
    await fleet.enqueue("nap", {"seconds": 0.01}, count=300)
    await fleet.enqueue("blocking_nap", {"seconds": 0.01}, count=50)
    most = max(one_child, await most_connections(fleet, jobs=350))
    # Two of the supervisor's, three of the child's.
    assert most <= 2 + 3

    await fleet.started("--processes", "2", children=2)
    await fleet.waiting("default", 3)
    assert await connections(fleet) <= (2 + 3) + (2 + 2 * 3)


async def test_transactions_of_handlers_stay_within_the_three(fleet: Fleet) -> None:
    """Async and blocking ones, with calls of the app inside, more at a time than there are connections."""
    await fleet.connection.execute("create table public.paid (job bigint)")
    fleet.patch(PAYING)
    await fleet.started("--concurrency", "30", "--threads", "10")
    await fleet.waiting("default")
    await fleet.enqueue("pay", count=60)
    await fleet.enqueue("pay_blocking", count=30)
    most = await most_connections(fleet, jobs=90 + 90)
    assert await fleet.scalar("select max(error::text) from fenceline.history") is None
    assert most <= 2 + 3
    assert await fleet.scalar("select count(distinct job) from public.paid") == 90
    assert await fleet.scalar("select count(*) from fenceline.history where outcome <> 'succeeded'") == 0


#: Handlers that write in their transaction, and enqueue through the app while they are in it.
PAYING = """
from fenceline import Context, SyncContext

@app.job()
async def pay(ctx: Context) -> dict:
    async with ctx.transaction() as connection:
        await connection.execute("insert into public.paid values ($1)", ctx.job_id)
        await app.enqueue("nap", labels={"how": "inside"})
        connection.result = {"paid": True}

@app.job()
def pay_blocking(ctx: SyncContext) -> dict:
    with ctx.transaction() as connection:
        connection.execute("insert into public.paid values (%s)", [ctx.job_id])
        app.sync.enqueue("nap", labels={"how": "inside"})
        connection.result = {"paid": True}
"""

#: Notes every statement that a process sends.
NOTE_STATEMENTS = """
import os, asyncpg
def noted(method):
    async def run(self, query, *arguments, **options):
        with open("statements", "a") as file:
            file.write(f"{os.getpid()} {query[:40]}\\n".replace("\\n ", " "))
        return await method(self, query, *arguments, **options)
    return run
for name in ("fetch", "fetchrow", "fetchval", "execute"):
    setattr(asyncpg.Connection, name, noted(getattr(asyncpg.Connection, name)))
"""


@pytest.mark.timing
async def test_an_idle_child_sends_less_than_a_statement_per_second(fleet: Fleet, figures: Figures) -> None:
    fleet.patch(NOTE_STATEMENTS)
    worker = await fleet.started("--processes", "2", children=2)

    async def settled() -> bool:
        return int(await fleet.scalar("select count(*) from fenceline.waiter")) == 4 * 2

    await until(settled, "all lanes are waited for")
    await asyncio.sleep(1.0)  # the first polls
    file = fleet.folder / "statements"
    already, started = len(file.read_text().splitlines()), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    seconds = time.monotonic() - started
    statements = file.read_text().splitlines()[already:]
    sent = Counter(int(line.split()[0]) for line in statements)
    for child in worker.children():
        figures.at_most("statements of an idle child", sent[child] / seconds, 1.0, "per second")
    # The fleet's maintenance once a second, and the heartbeat.
    figures.at_most("statements of its supervisor", sent[worker.pid] / seconds, 1.5, "per second")
