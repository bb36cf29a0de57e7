"""What a worker and a runner had each in their own way, and have in common since one engine runs both."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest
from tests.conftest import Connect
from tests.engine.conftest import Side
from tests.support.patience import seconds_left
from tests.worker.fleet import until

from fenceline import Context, Job
from fenceline.context.attempt import CLAIMS_MASK, Ending
from fenceline.delivery.contract import Verdict
from fenceline.delivery.http import HttpDelivery
from fenceline.delivery.postgres import SqlDelivery
from fenceline.engine import progress_reporter
from fenceline.errors import InvalidJson
from fenceline.model.public_id import parse_id
from fenceline.runtime.http_client import Client
from fenceline.runtime.reconnecting import ReconnectingConnection


@pytest.mark.parametrize(
    "refused", [{"succeeded"}, {"succeeded", "failed_for_good"}], ids=["the end", "its failure too"]
)
async def test_a_finish_that_is_refused_does_not_end_the_finisher(
    side: Side, monkeypatch: pytest.MonkeyPatch, refused: set[str]
) -> None:
    """The job fails; where not even that can be stored, it is given back. Everybody else's ends go on."""
    delivery: type[Any] = SqlDelivery if side.name == "worker" else HttpDelivery
    finish = delivery.finish

    async def refuse(self: Any, endings: Sequence[Ending]) -> Mapping[UUID, Verdict]:
        if any(
            ending.attempt.kind == "bad" and ending.outcome in refused and ending.attempt.token & CLAIMS_MASK == 1
            for ending in endings
        ):
            raise InvalidJson("this cannot be stored")
        verdicts: Mapping[UUID, Verdict] = await finish(self, endings)
        return verdicts

    monkeypatch.setattr(delivery, "finish", refuse)

    @side.app.job()
    async def bad() -> str:
        return "done"

    @side.app.job()
    async def good() -> str:
        return "done"

    async with side.work() as worker:
        job = await side.producer.enqueue("bad")
        for _ in range(3):
            assert await (await side.producer.enqueue("good")).result(timeout=seconds_left()) == "done"
        status = await job.wait(timeout=seconds_left())
        assert await (await side.producer.enqueue("good")).result(timeout=seconds_left()) == "done"
    if "failed_for_good" in refused:
        assert (status, (await job.get()).result) == ("succeeded", "done"), "given back, it ran again"
    else:
        record = await job.get()
        assert (status, record.error and record.error["code"]) == ("failed", "invalid_json")
    assert worker.statistics.stale == 0


async def test_a_stale_end_is_nobodys_success(side: Side, connect: Connect) -> None:
    operator = await connect()

    @side.app.job()
    async def overtaken(ctx: Context) -> str:
        await operator.execute("select fenceline.cancel_job($1, p_force => true)", parse_id(str(ctx.job)))
        return "done"

    async with side.work() as worker:
        job = await side.producer.enqueue("overtaken")

        async def told() -> bool:
            return worker.statistics.stale > 0

        await until(told, "the end is refused")
    assert (await job.get()).status == "cancelled"
    assert (worker.statistics.outcomes, worker.statistics.stale) == ({}, 1)


async def test_a_lane_full_of_long_jobs_leaves_a_place_to_another(side: Side, connect: Connect) -> None:
    gate = asyncio.Event()

    @side.app.job()
    async def long() -> None:
        await gate.wait()

    @side.app.job(lane="side")
    async def quick() -> str:
        await asyncio.sleep(0)
        return "done"

    await side.producer.lanes.create("side")
    jobs = [await side.producer.enqueue("long") for _ in range(10)]
    connection = await connect()

    async def running() -> bool:
        return (
            int(await connection.fetchval("select count(*) from fenceline.running where started_at is not null")) >= 2
        )

    async with side.work(concurrency=3):
        await until(running, "long jobs run")
        for _ in range(3):
            job = await side.producer.enqueue("quick", lane="side")
            assert await job.result(timeout=seconds_left()) == "done"
        gate.set()
        for job in jobs:
            await job.wait(timeout=seconds_left())


async def test_reports_of_many_are_one_request(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: Counter[str] = Counter()
    ask, try_call = Client.ask, ReconnectingConnection.try_call

    async def count_request(client: Client, method: str, path: str, body: str | None = None, **options: Any) -> Any:
        sent["reports"] += path == "/v1/jobs/report"
        sent["one by one"] += path.endswith(("/logs", "/progress"))
        return await ask(client, method, path, body, **options)

    async def count_call(connection: ReconnectingConnection, call: Any) -> Any:
        sent["reports"] += "report_attempts" in call.sql
        return await try_call(connection, call)

    monkeypatch.setattr(Client, "ask", count_request)
    monkeypatch.setattr(ReconnectingConnection, "try_call", count_call)
    gate = asyncio.Event()

    @side.app.job()
    async def tell(ctx: Context) -> None:
        ctx.log("here")
        await gate.wait()

    jobs = [await side.producer.enqueue("tell") for _ in range(30)]

    async def all_told() -> bool:
        return all([[line.message for line in await job.logs()] == ["here"] for job in jobs])

    began = time.monotonic()
    async with side.work():
        await until(all_told, "every line is written")
        moments = (time.monotonic() - began) / progress_reporter.MOMENT_SECONDS
        gate.set()
        for job in jobs:
            await job.wait(timeout=seconds_left())
    assert sent["one by one"] == 0
    assert 1 <= sent["reports"] <= moments + 2, "one for all, or a few where they started apart"


async def test_a_last_attempt_is_told_before_its_handler_runs(
    side: Side, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is lost untold is refunded; so the database knows of a last attempt first. Others cost nothing."""
    monkeypatch.setattr("fenceline.engine.progress_reporter.MOMENT_SECONDS", 3600.0)
    connection = await connect()
    seen: dict[str, str] = {}

    @side.app.job()
    async def look(name: str, ctx: Context) -> None:
        seen[name] = await connection.fetchval(
            "select status from fenceline.jobs where job_id = $1", parse_id(str(ctx.job))
        )

    async with side.work(concurrency=1):
        for name, attempts in (("last", 1), ("first", 2)):
            await (await side.producer.enqueue("look", {"name": name}, max_attempts=attempts)).wait(
                timeout=seconds_left()
            )
        assert await connection.fetchval("select bool_and(tells_starts) from fenceline.worker")
    assert seen == {"last": "running", "first": "claimed"}


async def test_large_results_and_logs_are_no_reason_to_lose_any(
    side: Side, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they are more than a request may have, or one attempt's lines alone."""
    sizes: list[int] = []
    ask = Client.ask

    async def weigh(client: Client, method: str, path: str, body: str | None = None, **options: Any) -> Any:
        if path in ("/v1/jobs/finish", "/v1/jobs/report"):
            sizes.append(len(body or ""))
        return await ask(client, method, path, body, **options)

    monkeypatch.setattr(Client, "ask", weigh)

    @side.app.job()
    async def large(n: int, ctx: Context) -> str:
        for place in range(3):
            ctx.log(f"{n}.{place} " + "x" * 7000)
        return str(n) * 400_000

    @side.app.job()
    async def talkative(ctx: Context) -> None:
        for place in range(900):
            ctx.log(f"{place} " + "x" * 6000)

    jobs = [await side.producer.enqueue("large", {"n": n}) for n in range(6)]
    talk = await side.producer.enqueue("talkative")
    async with side.work():
        assert [await job.result(timeout=seconds_left()) for job in jobs] == [str(n) * 400_000 for n in range(6)]
        await talk.wait(timeout=seconds_left())
    connection = await connect()

    async def lines(job: Job[Any]) -> list[str]:
        text = "select split_part(message, ' ', 1) as word from fenceline.log where job_id = $1 order by token, line"
        return [row["word"] for row in await connection.fetch(text, parse_id(job.id))]

    for n, job in enumerate(jobs):
        assert await lines(job) == [f"{n}.{place}" for place in range(3)]
    assert await lines(talk) == [str(place) for place in range(900)]
    if side.name == "runner":
        assert len(sizes) > 4
        assert max(sizes) < 2_000_000
