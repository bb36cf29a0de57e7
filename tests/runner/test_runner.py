"""Every verb of `ctx` over HTTP, on a runner that could not reach a database if it tried."""

import asyncio
import json
import logging
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import Connect
from tests.runner.conftest import LiveServer, running, unreachable
from tests.support.figures import Figures
from tests.support.patience import come, seconds_left
from tests.worker.fleet import until

from fenceline import Context, Fenceline, Job, Retry, RetryLater, Snooze, SyncContext, WithErrors
from fenceline.client.app_parts import app_parts
from fenceline.delivery.contract import WorkerRecord
from fenceline.delivery.http import HttpDelivery
from fenceline.errors import Superseded, Unsupported
from fenceline.model.worker_settings import WorkerSettings
from fenceline.runtime.http_client import Client, ServerTooOld
from fenceline.runtime.http_token import Token
from fenceline.worker.in_process import InProcessWorker


async def ended(job: Job[Any]) -> Any:
    """How a job ended: its record."""

    async def final() -> Any:
        record = await job.get()
        return record if record.finished_at is not None else None

    return await until(final, f"{job.id} ends")


async def test_async_and_blocking_handlers_run(live: LiveServer, token: str) -> None:
    app = unreachable()

    @app.job()
    async def double(n: int) -> int:
        return n * 2

    @app.job()
    async def slow(n: int, ctx: Context) -> str:
        await asyncio.sleep(0.01)
        return f"{ctx.job.kind} {n} {ctx.attempt} {ctx.tenant} {ctx.job.labels}"

    @app.job()
    def blocking(n: int, ctx: SyncContext) -> int:
        ctx.log("here", n=n)
        return n + 1

    jobs = [await live.app.enqueue(kind, {"n": 4}, labels={"a": "b"}) for kind in ("double", "slow", "blocking")]
    async with running(app, live.url, token):
        results = [await job.result(timeout=seconds_left()) for job in jobs]
    assert results == [8, "slow 4 1 default {'a': 'b'}", 5]
    [line] = await jobs[2].logs()
    assert (line.message, line.fields) == ("here", {"n": 4})


async def test_the_end_does_not_overtake_lines_on_their_way(
    live: LiveServer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = unreachable()
    under_way, go_on = asyncio.Event(), asyncio.Event()
    ask = Client.ask

    async def ask_slowly(client: Client, method: str, path: str, body: str | None = None, **options: Any) -> Any:
        if path == "/v1/jobs/report":
            under_way.set()
            await go_on.wait()
        return await ask(client, method, path, body, **options)

    monkeypatch.setattr(Client, "ask", ask_slowly)

    @app.job()
    async def tell(ctx: Context) -> None:
        ctx.log("before")
        await under_way.wait()
        asyncio.get_running_loop().call_later(0.3, go_on.set)

    job = await live.app.enqueue("tell")
    async with running(app, live.url, token):
        await ended(job)
    assert [line.message for line in await job.logs()] == ["before"]


async def test_steps_are_skipped_on_retry_and_a_checkpoint_is_resumed(live: LiveServer, token: str) -> None:
    app = unreachable()
    ran: list[Any] = []

    def load(path: str) -> dict[str, int]:
        ran.append(path)
        return {"rows": len(ran)}

    @app.job()
    async def work(ctx: Context) -> list[Any]:
        await ctx.list_steps("load", "odd/name #1", "last")
        rows = [await ctx.step("load", load, "a"), await ctx.step("odd/name #1", load, "b")]
        before = ctx.resume
        await ctx.checkpoint({"attempt": ctx.attempt, "zero": "\u0394"})
        if ctx.attempt == 1:
            raise RetryLater(after=0)
        return [rows, before]

    job = await live.app.enqueue("work")
    async with running(app, live.url, token):
        assert await job.result(timeout=seconds_left()) == [
            [{"rows": 1}, {"rows": 2}],
            {"attempt": 1, "zero": "\u0394"},
        ]
    assert ran == ["a", "b"]


async def test_a_blocking_handler_has_the_same_verbs(live: LiveServer, token: str) -> None:
    app = unreachable()

    @app.job()
    def child() -> None: ...

    @app.job()
    def work(ctx: SyncContext) -> dict[str, Any]:
        with ctx.phase("one"), ctx.lock("thing", 7):
            counts = ctx.items.complete("a", "b")
        step = ctx.step("s", lambda: 3)
        made = ctx.enqueue("child", priority=2)
        assert ctx.guard_newer("doc", 5)
        ctx.checkpoint([1])
        ctx.progress(done=1, total=2)
        return {"counts": counts, "step": step, "child": made.id}

    job = await live.app.enqueue("work")
    async with running(app, live.url, token):
        result = await job.result(timeout=seconds_left())
        assert result["counts"] == {"in_progress": 0, "completed": 2, "skipped": 0, "failed": 0}
        assert result["step"] == 3
        record = await ended(live.app.jobs.handle(result["child"]))
    assert (record.parent, record.priority) == (job.id, 2)


async def test_progress_phases_items_and_logs_arrive(live: LiveServer, token: str) -> None:
    app = unreachable()
    seen, go_on = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: Context) -> int:
        for n in range(3):
            ctx.log(f"line {n}", level="debug")
        async with ctx.phase("inventory"):
            await ctx.progress(done=3, total=9, message="m")
            await ctx.items.start("a", "b")
            await ctx.items.fail("a", error="broken")
            await ctx.items.skip("c", reason="old")
        seen.set()
        await go_on.wait()
        ctx.log("last")
        return 1

    job = await live.app.enqueue("work")
    async with running(app, live.url, token):
        await come(seen, "the handler has told everything")

        async def shown() -> bool:
            return await job.status() == "running" and len(await job.logs()) == 3

        await until(shown, "the job is running and has logged")
        record = await job.get()
        go_on.set()
        final = await ended(job)
    progress = record.progress or {}
    assert (record.phase, progress["done"], progress["items"]["in_progress"]) == ("inventory", 3, ["b"])
    assert progress["items"]["skipped"] == [{"item": "c", "reason": "old"}]
    assert (final.status, final.errors) == (
        "succeeded_with_errors",
        [{"item": "a", "error": "broken", "phase": "inventory"}],
    )
    assert [line.message for line in await job.logs()] == ["line 0", "line 1", "line 2", "last"]


async def test_ends_that_handlers_steer(live: LiveServer, token: str) -> None:
    app = unreachable()

    @app.job()
    async def work(how: str, ctx: Context) -> Any:
        match how:
            case "errors":
                return WithErrors({"n": 1}, ["one"])
            case "snooze" if ctx.token & 0xFFFF == 1:
                raise Snooze(0.01)
            case "boom":
                raise ValueError("boom")
            case "transaction":
                try:
                    async with ctx.transaction():
                        pass
                except Unsupported as error:
                    return str(error)[:17]
        return ctx.attempt

    jobs = {how: await live.app.enqueue("work", {"how": how}, max_attempts=1)
            for how in ("errors", "snooze", "boom", "transaction")}  # fmt: skip
    async with running(app, live.url, token):
        ends = {how: await ended(job) for how, job in jobs.items()}
    assert (ends["errors"].status, ends["errors"].result, ends["errors"].errors) == (
        "succeeded_with_errors", {"n": 1}, ["one"],
    )  # fmt: skip
    assert (ends["snooze"].status, ends["snooze"].result) == ("succeeded", 1)
    assert (ends["boom"].status, ends["boom"].error["message"]) == ("failed", "boom")
    assert "Traceback" in ends["boom"].error["traceback"]
    assert ends["transaction"].result == "ctx.transaction()"


async def test_children_and_parents(live: LiveServer, token: str) -> None:
    app = unreachable()

    @app.job()
    async def family(ctx: Context) -> list[str]:
        made = await ctx.enqueue_many("part", [{"n": 1}, {"n": 2}])
        last = await ctx.enqueue("sum", after=[job.id for job in made])
        return [last.id]

    @app.job()
    async def part(n: int) -> int:
        return n * 10

    @app.job(kind="sum")
    async def sum_up(ctx: Context) -> int:
        return sum(parent.result for parent in ctx.parents)

    job = await live.app.enqueue("family")
    async with running(app, live.url, token):
        [last] = await job.result(timeout=seconds_left())
        assert await live.app.jobs.handle(last).result(timeout=seconds_left()) == 30


async def test_a_lock_excludes_a_worker_on_the_same_database(live: LiveServer, token: str, database: str) -> None:
    inside = 0
    most = 0
    ran: set[str] = set()

    async def critical(who: str, ctx: Context) -> None:
        nonlocal inside, most
        async with ctx.lock("printer", 1):
            inside += 1
            most = max(most, inside)
            ran.add(who)
            await asyncio.sleep(0.02)
            inside -= 1

    over_http, over_sql = unreachable(), Fenceline(database)

    @over_http.job(kind="work")
    async def by_runner(ctx: Context) -> None:
        await critical("runner", ctx)

    @over_sql.job(kind="work")
    async def by_worker(ctx: Context) -> None:
        await critical("worker", ctx)

    async with over_sql, running(over_http, live.url, token, concurrency=4):
        working = asyncio.create_task(over_sql.run_worker(concurrency=4, grace_seconds=5))
        try:
            # Either may be there first, and do all that there is before the other has begun.
            while ran != {"runner", "worker"}:
                for job in [await live.app.enqueue("work") for _ in range(24)]:
                    await job.result(timeout=seconds_left())
        finally:
            working.cancel()
            await asyncio.wait({working})
    assert most == 1


async def test_an_older_version_is_superseded(live: LiveServer, token: str) -> None:
    app = unreachable()

    @app.job()
    async def write(version: int, ctx: Context) -> bool:
        return await ctx.guard_newer("edition 1", version)

    @app.job()
    async def give_way(version: int, ctx: Context) -> str:
        try:
            await ctx.guard_newer("edition 1", version)
        except Superseded:
            return "gave way"
        return "wrote"

    async with running(app, live.url, token):
        assert await (await live.app.enqueue("write", {"version": 7})).result(timeout=seconds_left()) is True
        assert await (await live.app.enqueue("give_way", {"version": 6})).result(timeout=seconds_left()) == "gave way"
        record = await ended(await live.app.enqueue("write", {"version": 5}))
    assert (record.status, record.error["code"]) == ("cancelled", "superseded")


async def test_a_cancel_reaches_the_handler(live: LiveServer, token: str) -> None:
    app = unreachable()
    started = asyncio.Event()

    @app.job()
    async def work(ctx: Context) -> None:
        started.set()
        await asyncio.sleep(3600)

    job = await live.app.enqueue("work")
    async with running(app, live.url, token, lease_seconds=8.0):
        await come(started, "the handler starts")
        await job.cancel(reason="not needed")
        record = await ended(job)
    assert (record.status, record.error["code"]) == ("cancelled", "cancelled")


async def test_a_handler_whose_attempt_is_gone_is_stopped(live: LiveServer, token: str) -> None:
    app = unreachable()
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work(ctx: Context) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    job = await live.app.enqueue("work")
    async with running(app, live.url, token, lease_seconds=8.0) as runner:
        await come(started, "the handler starts")
        await job.cancel(force=True)
        await come(stopped, "the handler is stopped")
    assert runner.statistics.stale == 1


async def test_a_configuration_that_changed_since_it_was_planned_runs_nothing(live: LiveServer, token: str) -> None:
    app = unreachable()

    @app.job()
    async def deploy() -> str:
        return "deployed"

    @deploy.snapshot
    def configuration() -> dict[str, int]:
        return {"size": 3}

    async def planned(snapshot: dict[str, int]) -> Job[Any]:
        text = json.dumps(snapshot)
        async with app_parts(live.app).database().transaction_connection() as own:
            required = await own.fetchval("select fenceline.snapshot_hash($1::jsonb)", text)
        return await live.app.enqueue("deploy", snapshot=snapshot, requires_hash=required)

    same, other = await planned({"size": 3}), await planned({"size": 4})
    async with running(app, live.url, token):
        assert await same.result(timeout=seconds_left()) == "deployed"
        record = await ended(other)
    assert (record.status, record.error["code"]) == ("failed", "plan_hash_mismatch")


async def test_what_cannot_be_stored_fails_its_job_alone(live: LiveServer, token: str, connect: Connect) -> None:
    app = unreachable()
    connection = await connect()
    await connection.execute("update fenceline.setting set max_result_bytes = 1000")

    @app.job()
    async def work(size: int) -> str:
        return "x" * size

    jobs = [await live.app.enqueue("work", {"size": size}) for size in (1, 2000, 2)]
    async with running(app, live.url, token):
        records = [await ended(job) for job in jobs]
    assert [record.status for record in records] == ["succeeded", "failed", "succeeded"]
    assert records[1].error["code"] == "too_large"


@pytest.mark.parametrize("grace", [0.0, 3600.0])
async def test_shutdown_lets_handlers_finish_or_gives_their_jobs_back(
    live: LiveServer, token: str, grace: float, connect: Connect
) -> None:
    await shut_down(live, token, grace, connect)


@pytest.mark.timing
@pytest.mark.parametrize("grace", [0.0, 3600.0])
async def test_how_long_a_shutdown_takes(
    live: LiveServer, token: str, grace: float, connect: Connect, figures: Figures
) -> None:
    took = await shut_down(live, token, grace, connect)
    figures.at_most(f"shutdown with a grace period of {grace:g} s", took, 2.5)


async def shut_down(live: LiveServer, token: str, grace: float, connect: Connect) -> float:
    """The seconds that it takes; a handler ends half a second after the runner was told to stop, or never."""
    app = unreachable()
    started, let_go = asyncio.Event(), asyncio.Event()

    @app.job()
    async def work() -> str:
        started.set()
        await let_go.wait()
        return "done"

    job = await live.app.enqueue("work")
    async with running(app, live.url, token, grace_seconds=grace):
        await come(started, "the handler starts")
        if grace:
            asyncio.get_running_loop().call_later(0.5, let_go.set)  # the block's end, which comes first, stops it
        asked = time.monotonic()
    took = time.monotonic() - asked
    assert await job.status() == ("succeeded" if grace else "queued")
    connection = await connect()
    assert await connection.fetchval("select stopped_at is not null from fenceline.worker where runner") is True
    return took


async def test_a_server_of_the_release_before_is_to_be_upgraded_first() -> None:
    """0.1.0 refuses what it does not know, in these words."""
    said = {"code": "invalid", "title": "Invalid", "detail": "tells_starts: Extra inputs are not permitted"}
    headers = {"content-type": "application/problem+json"}
    old = httpx.MockTransport(lambda _request: httpx.Response(422, json=said, headers=headers))
    record = WorkerRecord(name="r", host="h", pid=1, version="0.2.0", kinds={})
    delivery = HttpDelivery("http://old", "fl_token", transport=old)
    with pytest.raises(ServerTooOld, match="upgrade the server first"):
        await delivery.register(record)
    await delivery.close()


async def test_it_trades_its_token_while_it_works(live: LiveServer, token: str, tmp_path: Path) -> None:
    app = unreachable()

    @app.job
    async def work() -> str:
        return "done"

    kept = tmp_path / "token"
    kept.write_text(token)
    connect = partial(HttpDelivery, live.url, Token(token, kept), rotate_seconds=1.0)
    runner = InProcessWorker(app, WorkerSettings(grace_seconds=5.0), connect, keeper_first=True)
    working = asyncio.create_task(runner.run())

    async def is_traded() -> bool:
        return kept.read_text() != token

    try:
        await until(is_traded, "another token is in the file")
        job = await live.app.enqueue("work")
        assert await job.result(timeout=seconds_left()) == "done"
        runner.stop()
        async with asyncio.timeout(seconds_left()):
            await working
    finally:
        working.cancel()
        await asyncio.wait({working})


async def test_it_says_what_fails_and_when_it_runs_again(
    live: LiveServer, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = unreachable()

    @app.job(retry=Retry(max_attempts=2, backoff="fixed", base=0.2))
    async def fail() -> None:
        raise ValueError("no shelf")

    with caplog.at_level(logging.INFO, "fenceline.worker"):
        async with running(app, live.url, token):
            job = await live.app.enqueue("fail", retry=Retry(max_attempts=2, backoff="fixed", base=0.2))
            await ended(job)

            async def told() -> bool:
                return "failed for good" in caplog.text

            await until(told, "the failure is told")
    lines = [record.getMessage() for record in caplog.records if record.name == "fenceline.jobs"]
    assert lines[0].startswith(f"job {job.id} (fail) failed, attempt 1 of 2: ValueError: no shelf; retry in 0.")
    assert lines[1] == f"job {job.id} (fail) failed for good, attempt 2 of 2: ValueError: no shelf"
    started = next(record.getMessage() for record in caplog.records if "started:" in record.getMessage())
    assert f"server {live.url}, lanes all, kinds fail" in started
    assert token not in caplog.text


async def test_runners_of_two_versions_leave_jobs_to_each_other(live: LiveServer, token: str, connect: Connect) -> None:
    ran: Counter[str] = Counter()
    old, new = unreachable(), unreachable()

    @old.job(kind="mail")
    async def old_mail(to: str, subject: str) -> None:
        ran["old"] += 1

    @new.job(kind="mail")
    async def new_mail(to: str) -> None:
        ran["new"] += 1

    connection = await connect()

    async def both_are_known() -> bool:
        return bool(await connection.fetchval("select count(*) = 2 from fenceline.worker where runner"))

    async with running(new, live.url, token), running(old, live.url, token):
        await until(both_are_known, "both runners are known")  # one that is alone fails what it does not take
        jobs = [await live.app.enqueue("mail", {"to": "ann", "subject": "x"}) for _ in range(5)]
        jobs += [await live.app.enqueue("mail", {"to": "ann"}) for _ in range(5)]
        assert {(await ended(job)).status for job in jobs} == {"succeeded"}
    assert ran == {"old": 5, "new": 5}


async def test_handlers_wait_outside_their_slot(live: LiveServer, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a stranger with a one-time URL lets one go on."""
    monkeypatch.setenv("FENCELINE_PUBLIC_URL", live.url + "/")
    app, given = unreachable(), asyncio.Queue[str]()

    @app.job()
    async def ask(ctx: Context) -> list[Any]:
        async def hand_over() -> None:
            given.put_nowait(await ctx.callback_url("answer"))

        await ctx.step("hand over", hand_over)
        await ctx.sleep(0.05)
        return [await ctx.wait_for("answer"), ctx.attempt]

    @app.job()
    def ask_blocking(ctx: SyncContext) -> Any:
        return ctx.wait_for("answer")

    jobs = [await live.app.enqueue(kind) for kind in ("ask", "ask_blocking")]

    async def both_wait() -> bool:
        return [(await job.get()).waiting_for for job in jobs] == ["signal", "signal"]

    async with running(app, live.url, token), httpx.AsyncClient(timeout=seconds_left()) as stranger:
        await until(both_wait, "both wait")
        url = await given.get()
        assert (await stranger.get(url)).status_code == 405, "a link that is only looked at is not used up"
        assert (await stranger.post(url, json={"n": 1})).status_code == 202
        assert (await stranger.post(url, json={"n": 2})).status_code == 404
        await jobs[1].signal("answer", 2)
        assert await jobs[0].result(timeout=seconds_left()) == [{"n": 1}, 1]
        assert await jobs[1].result(timeout=seconds_left()) == 2
    assert given.empty(), "the step was done once"
