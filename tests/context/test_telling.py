"""What a handler tells while it runs: log, phases, progress, items."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.conftest import Connect
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.support.figures import Figures
from tests.support.patience import eventually
from tests.worker.in_process_worker import ended

from fenceline import Context, Fenceline, StaleAttempt, WithErrors
from fenceline.context.session import PROGRESS_SECONDS
from fenceline.database.call import Call
from fenceline.model.public_id import parse_id
from fenceline.runtime.reconnecting import ReconnectingConnection

anyhow = pytest.mark.parametrize("flavour", FLAVOURS)


@anyhow
async def test_log_phase_and_progress(app: Fenceline, work: Work, flavour: str) -> None:
    async with work():
        job = await app.enqueue(f"tell.{flavour}")
        record = await ended(job)
        lines = await job.logs()
    assert record.status == "succeeded"
    tokens = sorted({line.token for line in lines})
    assert len(tokens) == 2, "one for each attempt"
    for number, token in enumerate(tokens, start=1):
        own = [line for line in lines if line.token == token]
        assert [(line.line, line.level, line.message) for line in own] == [
            (1, "debug", "begun"),
            (2, "warning", "half"),
            (3, "info", "done"),
        ]
        assert own[0].fields == {"attempt": number}
        assert own[1].fields == {"message": "a field", "level_of": "nothing"}
        assert own[0].at <= own[1].at <= own[2].at
    # The last one is there although it came right after the one before; of the phase before nothing is left.
    assert (record.phase, record.progress) == ("two", {"done": 19, "total": 20})


@anyhow
async def test_items_that_failed_are_the_jobs_errors(app: Fenceline, work: Work, flavour: str) -> None:
    async with work():
        record = await ended(await app.enqueue(f"build.{flavour}"))
    assert (record.status, record.result, record.attempt) == ("succeeded_with_errors", "built", 2)
    assert record.errors == ["by hand", {"item": "c", "error": "ValueError: bad", "phase": None}]
    assert record.progress == {
        "items": {
            "in_progress": [],
            "completed": ["a", "d"],
            "skipped": [{"item": "b", "reason": "not needed"}],
            "failed": [{"item": "c", "error": "ValueError: bad"}],
        }
    }, "the first attempt has left nothing"


async def test_fifty_coroutines_move_items(app: Fenceline, work: Work) -> None:
    @app.job()
    async def many(ctx: Context) -> dict[str, int]:
        async def one(number: int) -> None:
            await ctx.items.start(f"i{number}")
            await ctx.progress(done=number)
            await asyncio.sleep(0)
            match number % 4:
                case 0:
                    await ctx.items.skip(f"i{number}", reason="even")
                case 1:
                    await ctx.items.fail(f"i{number}", error="odd")
                case _:
                    await ctx.items.complete(f"i{number}", f"again{number}")

        await asyncio.gather(*(one(number) for number in range(50)))
        return await ctx.items.start()

    async with work():
        record = await ended(await app.enqueue("many"))
    assert record.result == {"in_progress": 0, "completed": 48, "skipped": 13, "failed": 13}
    assert record.progress is not None
    items = record.progress["items"]
    named = [item if isinstance(item, str) else item["item"] for moved in items.values() for item in moved]
    assert len(named) == len(set(named)) == 74, "none is lost, none is there twice"
    assert {entry["error"] for entry in items["failed"]} == {"odd"}
    assert record.errors is not None
    assert {error["item"] for error in record.errors} == {f"i{number}" for number in range(1, 50, 4)}
    assert (record.status, record.progress["done"]) == ("succeeded_with_errors", 49)


async def test_a_phase_begins_with_empty_progress_and_items(app: Fenceline, work: Work) -> None:
    seen = []

    @app.job()
    async def phases(ctx: Context) -> None:
        for name in ("one", "two"):
            async with ctx.phase(name):
                seen.append((await app.jobs.get(ctx.job.id)).progress)
                await ctx.progress(1, 2)
                await ctx.items.fail(name, error="bad")
                seen.append((await app.jobs.get(ctx.job.id)).progress)

    async with work():
        record = await ended(await app.enqueue("phases"))
    assert seen[0] == seen[2] == {}
    items = {"in_progress": [], "completed": [], "skipped": [], "failed": [{"item": "two", "error": "bad"}]}
    assert seen[3] == {"done": 1, "total": 2, "items": items}
    assert record.errors == [{"item": name, "error": "bad", "phase": name} for name in ("one", "two")]
    kept = await app.jobs.handle(record.id).phases()
    assert [(phase.phase, phase.progress["items"]["failed"]) for phase in kept if phase.progress] == [
        (name, [{"item": name, "error": "bad"}]) for name in ("one", "two")
    ]


async def test_quick_progress_is_written_together(app: Fenceline, work: Work) -> None:
    asked: list[str] = []
    took = 0.0

    @app.job()
    async def quick(ctx: Context) -> None:
        api = ctx._session.api
        ask = api.execute

        async def counted(job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
            asked.append(operation)
            return await ask(job_id, attempt_id, operation, values)

        nonlocal took
        api.execute = counted  # type: ignore[method-assign]  # to count
        began = time.monotonic()
        for done in range(500):
            await ctx.progress(done)
        took = time.monotonic() - began
        api.execute = ask  # type: ignore[method-assign]  # as it was

    async with work():
        record = await ended(await app.enqueue("quick"))
    assert record.progress == {"done": 499}
    assert set(asked) == {"set_progress"}
    # One at the beginning, then at most one in each period, however long the machine takes for 500 calls.
    assert len(asked) <= took / PROGRESS_SECONDS + 2


async def test_what_cannot_be_told(app: Fenceline, work: Work) -> None:
    @app.job()
    async def bad(ctx: Context, how: str) -> None:
        match how:
            case "phase":
                await ctx.phase("x" * 201)
            case "progress":
                await ctx.progress(1, text="x" * 70_000)
            case "item":
                await ctx.items.start(["a", "b"])  # type: ignore[arg-type]  # the mistake that the test is about
            case "long item":
                await ctx.items.start("x" * 501)

    async with work():
        said = {}
        for how in ("phase", "progress", "item", "long item"):
            record = await ended(await app.enqueue("bad", {"how": how}, max_attempts=1))
            assert record.error is not None
            said[how] = (record.status, record.error["code"], record.error["message"])
    assert said == {
        "phase": ("failed", "invalid_option", f"phase '{'x' * 80}' is not valid: use 1 to 200 characters"),
        "progress": ("failed", "too_large", "the progress has 70023 characters: at most 65536 are allowed"),
        "item": ("failed", "error", "an item is a text, not ['a', 'b']: pass each item as a separate argument"),
        "long item": ("failed", "invalid_option", "an item needs a name of 1 to 500 characters"),
    }


@pytest.mark.parametrize("verb", ["progress", "phase", "items", "checkpoint", "list_steps", "step", "enqueue"])
async def test_an_attempt_that_is_gone_can_tell_nothing(
    app: Fenceline, work: Work, connect: Connect, verb: str
) -> None:
    told = asyncio.Event()
    raised: list[BaseException] = []
    verbs: dict[str, Callable[[Context], Awaitable[Any]]] = {
        "progress": lambda ctx: ctx.progress(1),
        "phase": lambda ctx: ctx.phase("late"),
        "items": lambda ctx: ctx.items.start("late"),
        "checkpoint": lambda ctx: ctx.checkpoint("late"),
        "list_steps": lambda ctx: ctx.list_steps("late"),
        "step": lambda ctx: ctx.step("late", str, 1),
        "enqueue": lambda ctx: ctx.enqueue("child", {"number": 1}),
    }

    @app.job()
    async def lose(ctx: Context) -> None:
        await told.wait()
        try:
            await verbs[verb](ctx)
        except BaseException as error:
            raised.append(error)
            raise

    connection = await connect()
    async with work():
        job = await app.enqueue("lose")

        async def is_told() -> bool:
            """Otherwise the handler could be stopped because its start is refused, before it tells anything itself."""
            return bool(await connection.fetchval("select count(started_at) from fenceline.running"))

        await eventually(is_told, "the database knows of the start")
        # As if another worker had it: the fence is another.
        await connection.execute("update fenceline.running set attempt_id = $1", uuid4())
        told.set()

        async def has_raised() -> bool:
            return bool(raised)

        await eventually(has_raised, "the handler is told")
        assert isinstance(raised[0], StaleAttempt)
        for table in ("progress", "step", "checkpoint", "child"):
            assert await connection.fetchval(f"select count(*) from fenceline.{table}") == 0
        assert await connection.fetchval("select count(*) from fenceline.history") == 0, "and it cannot end it"
        await connection.execute("delete from fenceline.running where job_id = $1", parse_id(job.id))


async def test_errors_beside_a_result(app: Fenceline, work: Work) -> None:
    def make(hint: Any) -> Any:
        async def some(errors: list[str]):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the annotation follows
            return WithErrors({"built": 7}, errors)

        some.__annotations__["return"] = hint
        return some

    hints = (WithErrors, WithErrors[dict[str, int]], dict[str, int] | WithErrors[dict[str, int]], dict[str, int])
    for number, hint in enumerate(hints):
        app.job(kind=f"some{number}")(make(hint))
    app.job(kind="unfit")(make(WithErrors[int]))
    async with work():
        for number in range(len(hints)):
            job = await app.enqueue(f"some{number}", {"errors": ["one", "two"]})
            record = await ended(job)
            assert (record.status, record.result) == ("succeeded_with_errors", {"built": 7})
            assert record.errors == ["one", "two"]
            assert await job.result() == {"built": 7}
        record = await ended(await app.enqueue("some0", {"errors": []}))
        assert (record.status, record.errors) == ("succeeded", None)
        record = await ended(await app.enqueue("unfit", {"errors": []}))
        assert record.error is not None
        assert record.error["code"] == "invalid_result"


async def test_a_thousand_lines_a_second_cost_few_statements(
    app: Fenceline, work: Work, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By count: each moment writes everything in one statement, however many handlers have something to say."""
    statements, took = await talk_much(app, work, connect, monkeypatch)
    assert 1 <= len([sql for sql in statements if "report_attempts" in sql]) <= took / 0.5 + 1


@pytest.mark.timing
async def test_how_many_statements_a_worker_sends_while_handlers_talk(
    app: Fenceline, work: Work, connect: Connect, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    statements, took = await talk_much(app, work, connect, monkeypatch)
    figures.at_most(f"statements in {took:.1f} s, for 1500 lines", len(statements), 5 * took + 1, "statements")


async def talk_much(
    app: Fenceline, work: Work, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], float]:
    """The statements for 1500 lines of 100 handlers, and the seconds that these took; every line is there."""
    lines = 0
    stop = asyncio.Event()

    @app.job()
    async def talk(ctx: Context) -> None:
        nonlocal lines
        while not stop.is_set():
            ctx.log("a line")
            lines += 1
            await asyncio.sleep(0.1)

    sent: list[str] = []
    call = ReconnectingConnection.try_call

    async def counted(line: ReconnectingConnection, what: Call[Any]) -> Any:
        sent.append(what.sql)
        return await call(line, what)

    monkeypatch.setattr(ReconnectingConnection, "try_call", counted)
    async with work():
        jobs = await talk.enqueue_many([{}] * 100)

        async def enough() -> bool:
            return lines >= wanted

        wanted = 1000
        await eventually(enough, "the handlers talk", lambda: lines)
        sent.clear()
        before, began = lines, time.monotonic()
        wanted = before + 1500
        await eventually(enough, "the handlers talk on", lambda: lines)
        statements, took = list(sent), time.monotonic() - began
        stop.set()
        for job in jobs:
            assert (await ended(job)).status == "succeeded"
    connection = await connect()
    assert await connection.fetchval("select count(*) from fenceline.log") == lines
    gaps = "select count(*) from (select max(line) <> count(*) as gap from fenceline.log group by job_id) l where gap"
    assert await connection.fetchval(gaps) == 0
    return statements, took
