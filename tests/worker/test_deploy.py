"""A deployment with old and new workers side by side: a new argument, a removed one, a renamed kind. No job is lost."""

import asyncio
import contextlib
import logging
from collections import Counter

import pytest
from tests.conftest import Connect
from tests.support.patience import come, seconds_left
from tests.worker.fleet import until
from tests.worker.in_process_worker import ended, running

from fenceline import Fenceline, FencelineError
from fenceline.client.app_parts import app_parts
from fenceline.client.job_decorator import JobSettings
from fenceline.doctor.examine import examine
from fenceline.model.status import Status

COUNT = 5000  # jobs in all
EACH = COUNT // 5


def old_version(app: Fenceline, ran: "Counter[str]") -> Fenceline:
    @app.job
    async def ingest(path: str, chunk: int = 1000) -> None:
        ran["old ingest"] += 1

    @app.job
    async def mail(to: str, subject: str) -> None:
        ran["old mail"] += 1

    @app.job
    async def report(day: int) -> None:
        ran["report"] += 1

    return app


def new_version(app: Fenceline, ran: "Counter[str]") -> Fenceline:
    @app.job
    async def ingest(path: str, chunk: int = 1000, depth: int | None = None) -> None:
        ran["deep ingest" if depth else "new ingest"] += 1

    @app.job
    async def mail(to: str) -> None:
        ran["new mail"] += 1

    @app.job(aliases=["report"])
    async def daily_report(day: int) -> None:
        ran["report"] += 1

    return app


async def test_a_deployment_fails_no_job(database: str, connect: Connect) -> None:
    ran: Counter[str] = Counter()
    old, other_old, new, other_new = [
        version(Fenceline(database), ran) for version in (old_version, old_version, new_version, new_version)
    ]
    connection = await connect()

    async def all_ended() -> bool:
        return bool(await connection.fetchval("select count(*) = $1 from fenceline.history where final", COUNT))

    async with contextlib.AsyncExitStack() as workers, contextlib.AsyncExitStack() as first:
        await workers.enter_async_context(running(old))
        await first.enter_async_context(running(other_old))
        await app_parts(old).handlers["ingest"].enqueue_many([{"path": "a", "chunk": n} for n in range(EACH)])
        await workers.enter_async_context(running(new))
        await app_parts(old).handlers["mail"].enqueue_many([{"to": "ann", "subject": "hello"}] * EACH)
        await app_parts(new).handlers["ingest"].enqueue_many([{"path": "a", "depth": 3}] * EACH)
        await app_parts(new).handlers["mail"].enqueue_many([{"to": "ann"}] * EACH)
        await first.aclose()  # one of the old goes
        await workers.enter_async_context(running(other_new))
        await app_parts(old).handlers["report"].enqueue_many([{"day": 1}] * (EACH // 2))
        await app_parts(new).handlers["daily_report"].enqueue_many([{"day": 1}] * (EACH // 2))
        await until(all_ended, "all jobs end")
    outcomes = await connection.fetch("select outcome, count(*) from fenceline.history where final group by outcome")
    assert [tuple(row) for row in outcomes] == [("succeeded", COUNT)]
    assert (ran["old mail"], ran["new mail"], ran["deep ingest"], ran["report"]) == (EACH, EACH, EACH, EACH)
    assert ran["old ingest"] + ran["new ingest"] == EACH
    refused = "select job_id, count(*) as times from fenceline.history where asked = 'refused' group by job_id"
    assert await connection.fetchval(f"select max(times) from ({refused}) r") == 1, "nobody is asked twice"


async def test_a_refused_job_says_so_in_explain_log_and_doctor(
    database: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await connect()
    old, new = Fenceline(database), new_version(Fenceline(database), Counter())

    @old.job
    async def mail(to: str, subject: str) -> None:
        started.set()
        await gate.wait()

    gate, started = asyncio.Event(), asyncio.Event()
    with caplog.at_level(logging.WARNING, "fenceline.jobs"):
        async with running(old, concurrency=1, batch=1):
            busy = await app_parts(old).handlers["mail"].enqueue(to="ann", subject="one")
            await come(started, "the first job starts")
            async with running(new):
                job = await app_parts(old).handlers["mail"].enqueue(to="ann", subject="two")

                async def refused() -> bool:
                    return bool(await connection.fetchval("select count(*) from fenceline.refusal"))

                await until(refused, "it is refused")
                explained = await job.explain()
                reasons = {reason.code: reason.text for reason in (explained, *explained.also)}
                said = reasons["args_refused"]
                assert said.startswith("Handlers of kind mail on 1 of 2 live workers do not take its args")
                assert "subject" in said
                found = await examine(connection)
                differ = next(f for f in found if f.check == "signatures_differ" and f.subject == "mail")
                assert "mail(to, subject)" in differ.what
                assert "mail(to)" in differ.what
                assert "1 job" in differ.what
                gate.set()
                assert [(await ended(one)).status for one in (busy, job)] == [Status.SUCCEEDED] * 2
    line = next(record.getMessage() for record in caplog.records if job.id in record.getMessage())
    assert "(mail) is left to workers with another version of its handler, attempt 1 of 3: InvalidArgs: args" in line


async def test_a_job_that_no_live_worker_takes_fails(database: str) -> None:
    app = new_version(Fenceline(database), Counter())
    async with running(app):
        record = await ended(await app.jobs.enqueue("mail", {"to": "ann", "subject": "x"}, {}))
    assert record.error is not None
    assert (record.status, record.error["code"], record.attempt) == (Status.FAILED, "invalid_args", 1)
    assert "subject" in record.error["message"]


@pytest.mark.parametrize("where", ["app", "kind"])
async def test_extra_args_can_be_ignored(database: str, where: str) -> None:
    app = Fenceline(database, extra_args="ignore" if where == "app" else "refuse")
    options: JobSettings = {"extra_args": "ignore"} if where == "kind" else {}

    @app.job(**options)
    async def mail(to: str) -> str:
        return to

    async with running(app):
        job = await app.jobs.enqueue("mail", {"to": "ann", "subject": "x"}, {})
        assert await job.result(timeout=seconds_left()) == "ann"
    with pytest.raises(FencelineError, match="subject"):
        await app.enqueue("mail", {"to": "ann", "subject": "x"})
    with pytest.raises(ValueError, match="use refuse or ignore"):
        Fenceline(database, extra_args="drop")  # type: ignore[arg-type]  # wrong on purpose
