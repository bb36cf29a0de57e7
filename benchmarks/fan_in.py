"""10,000 children and the job that waits for all of them: statements beyond claim and finish, per child.

A handler makes the children and the fan-in with `ctx.enqueue_many` and `ctx.enqueue`; a real worker runs all of it. The
server counts statements (pg_stat_statements is not everywhere, so the worker's own connections are watched: every call
of the client goes through one place).
"""

import asyncio
import contextlib
import time
from collections import Counter
from typing import Any, ClassVar

import asyncpg

from benchmarks.client_enqueue import dsn_of
from benchmarks.measure import Result, Size
from fenceline import Context, Fenceline

TARGET = 0.1


class Counted(asyncpg.Connection):  # type: ignore[type-arg]  # records are plain
    """A connection that counts what is sent over it, by the function that is called."""

    sent: ClassVar[Counter[str]] = Counter()

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        self.sent[query.partition("fenceline.")[2].partition("(")[0]] += 1
        return await super().fetch(query, *args, **options)


@contextlib.contextmanager
def counted_connections() -> Any:
    """Every connection that is made meanwhile counts."""
    connect = asyncpg.connect

    def counting(*args: Any, **options: Any) -> Any:
        return connect(*args, connection_class=Counted, **options)

    Counted.sent.clear()
    asyncpg.connect = counting
    try:
        yield Counted.sent
    finally:
        asyncpg.connect = connect


async def run_fan_in(dsn: str, children: int) -> tuple[Counter[str], float]:
    """Statements by function, and the seconds from the first to the last."""
    with counted_connections() as sent:
        app = Fenceline(dsn)

        @app.job()
        async def child(number: int) -> int:
            return number

        @app.job()
        async def whole(ctx: Context) -> int:
            assert all(parent.status == "succeeded" for parent in ctx.parents)
            return sum(parent.result for parent in ctx.parents)

        @app.job()
        async def plan(ctx: Context, count: int) -> str:
            made = await ctx.enqueue_many(child, [{"number": number} for number in range(count)])
            return (await ctx.enqueue(whole, after={"jobs": made, "policy": "always"})).id

        working = asyncio.create_task(app.run_worker(grace_seconds=0))
        started = time.perf_counter()
        fan_in = await (await plan.enqueue(children)).result(600)
        assert await app.jobs.handle(fan_in).result(600) == sum(range(children))
        took = time.perf_counter() - started
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await app.close()
    return sent, took


def beyond_claim_and_finish(sent: Counter[str]) -> int:
    return sum(number for name, number in sent.items() if name not in ("claim_jobs", "finish_attempts"))


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    children = 1_000 if size.quick else 10_000
    sent, took = await run_fan_in(await dsn_of(connection), children)
    assert await connection.fetchval("select count(*) from fenceline.history where final") == children + 2
    most = ", ".join(f"{name or 'other'} {number}" for name, number in sent.most_common(6))
    return [
        Result(
            measurement=f"fan-in of {children:,} children: statements per 100 children beyond claim and finish",
            unit="",
            ours=100 * beyond_claim_and_finish(sent) / children,
            target=100 * TARGET,
            bound="at most",
            note=f"{took:.1f} s; {most}",
        )
    ]
