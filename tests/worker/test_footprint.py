"""What a worker costs a database: connections, and statements while there is nothing to do."""

import asyncio
import time
from collections import Counter

from tests.worker.fleet import Fleet, until

IDLE_SECONDS = 8.0


async def connections(fleet: Fleet) -> int:
    return int(
        await fleet.scalar(
            "select count(*) from pg_stat_activity "
            "where datname = current_database() and application_name like 'fenceline%'"
        )
    )


async def test_a_child_has_at_most_three_connections(fleet: Fleet) -> None:
    await fleet.started("--concurrency", "20")
    await fleet.waiting("default")
    one_child = await connections(fleet)
    await fleet.enqueue("nap", {"seconds": 0.01}, count=300)
    await fleet.enqueue("blocking_nap", {"seconds": 0.01}, count=50)
    most = one_child
    while await fleet.scalar("select count(*) from fenceline.history where final") < 350:
        most = max(most, await connections(fleet))
        await asyncio.sleep(0.02)
    # Two of the supervisor's, three of the child's.
    assert most <= 2 + 3

    await fleet.started("--processes", "2", children=2)
    await fleet.waiting("default", 3)
    assert await connections(fleet) <= (2 + 3) + (2 + 2 * 3)


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


async def test_an_idle_child_sends_less_than_a_statement_per_second(fleet: Fleet) -> None:
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
        assert sent[child] / seconds <= 1.0, statements
    # The fleet's maintenance once a second, and the heartbeat.
    assert sent[worker.pid] / seconds <= 1.5, statements
