"""A line that is cut, a server that goes away: no job is lost, none ends twice."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from tests.client.proxy import proxied
from tests.conftest import Connect
from tests.runner.conftest import LiveServer, running, unreachable
from tests.support.figures import Figures
from tests.support.patience import come, seconds_left
from tests.worker.fleet import Connection, until

from fenceline import Context
from fenceline.model.outcome import Outcome

JOBS = 500
CUTS = 100


async def test_500_jobs_over_a_line_that_is_cut_100_times(live: LiveServer, token: str, connect: Connect) -> None:
    app = unreachable()
    chance = random.Random(7)
    ran: Counter[int] = Counter()

    @app.job()
    async def work(n: int, ctx: Context) -> int:
        ran[n] += 1
        ctx.log("one")
        await ctx.step("s", lambda: n)
        await asyncio.sleep(chance.random() * 0.05)
        ctx.log("two")
        return n

    @app.job()
    async def quick(n: int) -> int:
        ran[n] += 1
        return n

    connection = await connect()
    for kind, numbers in (("work", range(0, JOBS, 2)), ("quick", range(1, JOBS, 2))):
        texts = [f'{{"n": {n}}}' for n in numbers]
        await connection.execute("select job_ids from fenceline.enqueue_many($1, cast($2 as json[]))", kind, texts)

    async def finished() -> int:
        return int(await connection.fetchval("select count(*) from fenceline.history where final"))

    async with proxied(live.url) as proxy:
        cuts = 0
        # Few at a time, so that the work lasts as long as the cuts do.
        async with running(app, proxy.url, token, concurrency=8, batch=8, lease_seconds=60.0) as runner:
            while await finished() < JOBS or cuts < CUTS:
                if cuts < CUTS and proxy.connections:
                    match chance.choice(["reply", "request", "all"]):
                        case "reply":
                            proxy.lose_reply = True
                        case "request":
                            proxy.lose_request = True
                        case "all":
                            await proxy.cut()
                    cuts += 1
                await asyncio.sleep(0.03)
    rows = await connection.fetch("select job_id, final, outcome, result from fenceline.history")
    finals = Counter(row["job_id"] for row in rows if row["final"])
    assert len(finals) == JOBS  # none lost
    assert set(finals.values()) == {1}  # none finished twice
    assert {row["outcome"] for row in rows if row["final"]} == {"succeeded"}
    assert sorted(int(row["result"]) for row in rows if row["final"]) == list(range(JOBS))
    assert runner.statistics.outcomes[Outcome.SUCCEEDED] == JOBS  # the runner knows of every one
    # Each line once, although requests were sent again.
    lines = await connection.fetch(
        "select count(*) as n from fenceline.log l join fenceline.history h using (job_id, token) "
        "where h.final group by job_id"
    )
    assert Counter(row["n"] for row in lines) == {2: JOBS // 2}
    # A reply that was lost for longer than two heartbeats gives its attempts back; that is rare.
    assert sum(ran.values()) - JOBS <= sum(1 for row in rows if not row["final"])


async def test_a_server_that_restarts_in_the_middle_of_jobs(live: LiveServer, token: str, connect: Connect) -> None:
    """20 handlers have something to say while it is away the first time, and end while it is away the second time."""
    app = unreachable()
    started = stepped = 0
    go_on, end = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(n: int, ctx: Context) -> int:
        nonlocal started, stepped
        started += 1
        ctx.log("before")
        await go_on.wait()
        await ctx.step("s", lambda: n)
        stepped += 1
        await end.wait()
        return n

    jobs = [await live.app.enqueue("work", {"n": n}) for n in range(40)]
    connection = await connect()
    async with running(app, live.url, token, concurrency=20) as runner:

        async def under_way() -> bool:
            return started >= 20

        async def beyond_their_step() -> bool:
            return stepped >= 20

        await until(under_way, "20 handlers run")
        for let_go in (go_on, end):
            await live.stop()
            let_go.set()
            await asyncio.sleep(0.5)  # it is away for a while
            await live.start()
            await until(beyond_their_step, "20 handlers have done their step")
        results = [await job.result(timeout=seconds_left()) for job in jobs]
    assert results == list(range(40))
    assert started == 40
    assert runner.statistics.outcomes == {"succeeded": 40}
    history = await connection.fetch("select outcome, final from fenceline.history")
    assert Counter((row["outcome"], row["final"]) for row in history) == {("succeeded", True): 40}


async def test_ends_wait_while_the_server_is_away(live: LiveServer, token: str, connect: Connect) -> None:
    app = unreachable()
    go_on = asyncio.Event()
    started: list[int] = []
    returned: list[int] = []

    @app.job()
    async def work(n: int) -> Any:
        started.append(n)
        await go_on.wait()
        returned.append(n)
        return {"n": n}

    jobs = [await live.app.enqueue("work", {"n": n}) for n in range(10)]
    connection = await connect()

    async def all_started() -> bool:
        return len(started) == 10

    async with running(app, live.url, token) as runner:
        await until(all_started, "all have started")
        await live.stop()
        go_on.set()

        async def spooled() -> bool:
            return len(returned) == 10 and runner.engine is not None and len(runner.engine._finisher.held) == 10

        await until(spooled, "the ends wait")
        assert await connection.fetchval("select count(*) from fenceline.history") == 0
        await live.start()
        assert [await job.result(timeout=seconds_left()) for job in jobs] == [{"n": n} for n in range(10)]
    assert returned == list(range(10))


async def test_a_runner_that_cannot_renew_its_lease_stops_its_handlers_and_starts_anew(
    live: LiveServer, token: str, connect: Connect
) -> None:
    await lose_the_lease(live, token, await connect())


@pytest.mark.timing
async def test_handlers_are_stopped_before_the_lease_ends(
    live: LiveServer, token: str, connect: Connect, figures: Figures
) -> None:
    left = await lose_the_lease(live, token, await connect())
    figures.at_least("left of the lease when the handler has stopped", left, -0.25)  # or as good as


async def lose_the_lease(live: LiveServer, token: str, connection: Connection) -> float:
    """The server is out of reach until the lease is over. Returns what was left of it when the handler had stopped."""
    app = unreachable()
    started, stopped = asyncio.Event(), asyncio.Event()
    runs = 0  # not the attempt: one that is lost before its start was told does not count

    @app.job()
    async def work() -> int:
        nonlocal runs
        runs += 1
        if runs == 1:
            started.set()
            try:
                await asyncio.sleep(3600)
            finally:
                stopped.set()
        return runs

    job = await live.app.enqueue("work")

    # A busy machine keeps a lease of that length, as long as the server answers.
    async with proxied(live.url) as proxy, running(app, proxy.url, token, lease_seconds=8.0) as runner:
        await come(started, "the handler starts")

        async def known() -> bool:
            return bool(await connection.fetchval("select started_at is not null from fenceline.running"))

        await until(known, "the server knows of the start")
        await proxy.refuse()
        await come(stopped, "the handler is stopped")
        left = float(
            await connection.fetchval(
                "select extract(epoch from lease_until - clock_timestamp()) from fenceline.worker order by id limit 1"
            )
        )

        async def swept() -> bool:  # before that, a sign-off could still come in time
            return bool(await connection.fetchval("select count(*) from fenceline.history"))

        await until(swept, "the lease is over")
        await proxy.open()
        assert await job.result(timeout=seconds_left()) == 2
    assert await connection.fetchval("select count(*) from fenceline.worker where runner") >= 2
    outcomes = await connection.fetch("select outcome from fenceline.history order by token")
    assert [row["outcome"] for row in outcomes] == ["lost", "succeeded"]
    assert runner.statistics.stale >= 1
    return left
