"""What a handler logs lands in its job's log, and nothing that it logs can do harm."""

import asyncio
import json
import logging
from typing import Any

import pytest
from tests.support.patience import eventually, seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Fenceline
from fenceline.context.context import Context
from fenceline.context.log_lines import MAX_WAITING_LINES, current_session
from fenceline.context.log_output import JsonFormatter
from fenceline.model.json_text import stored_json

library = logging.getLogger("tests.some.library")


@pytest.fixture
def app(database: str) -> Fenceline:
    return Fenceline(database)


@pytest.mark.parametrize("kind", ["inline", "paused", "threaded"])
async def test_stdlib_logging_lands_in_the_jobs_log(app: Fenceline, kind: str) -> None:
    def say(text: str) -> None:
        library.warning("said %s", text)
        try:
            {"here": 1}["not there"]
        except KeyError:
            library.exception("failed")

    @app.job()
    async def inline(text: str) -> None:
        say(text)

    @app.job()
    async def paused(text: str) -> None:
        await asyncio.sleep(0.01)
        await asyncio.gather(asyncio.to_thread(say, text))

    @app.job()
    def threaded(text: str) -> None:
        say(text)

    async with running(app):
        jobs = [await app.enqueue(kind, {"text": text}) for text in ("one", "two")]
        for job, text in zip(jobs, ("one", "two"), strict=True):
            await job.wait(timeout=seconds_left())
            lines = await job.logs()
            assert [(line.level, line.message.partition("\n")[0]) for line in lines] == [
                ("warning", f"said {text}"),
                ("error", "failed"),
            ]
            assert lines[0].fields == {"logger": "tests.some.library"}
            assert "KeyError: 'not there'" in lines[1].message
    assert current_session.get() is None


async def test_lines_of_a_long_handler_are_there_while_it_runs(app: Fenceline) -> None:
    @app.job()
    async def long(ctx: Context) -> None:
        ctx.log("started", step=1)
        while not ctx.cancelled:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.02)

    async with running(app):
        job = await app.enqueue("long")
        lines = await eventually(job.logs, "its first line is written")
        assert (lines[0].message, lines[0].fields) == ("started", {"step": 1})
        await job.cancel()
        await job.wait(timeout=seconds_left())


async def test_a_flood_is_bounded_and_said(app: Fenceline) -> None:
    @app.job()
    async def flood(ctx: Context) -> None:
        for number in range(MAX_WAITING_LINES + 50):
            ctx.log(f"line {number}")

    @app.job()
    async def huge(ctx: Context) -> None:
        ctx.log("x" * 1_000_000, much="y" * 1_000_000)

    async with running(app):
        job = await app.enqueue("flood")
        await job.wait(timeout=seconds_left())
        lines = await job.logs(limit=5000)
        assert len(lines) == MAX_WAITING_LINES + 1
        assert lines[-1].message == "50 lines were dropped: too many at once"
        job = await app.enqueue("huge")
        await job.wait(timeout=seconds_left())
        [line] = await job.logs()
        assert len(line.message) < 10_000
        assert len(json.dumps(line.fields)) < 30_000


@pytest.mark.parametrize(
    "odd",
    [{"a": "\x00"}, {"a": "\ud800"}, {"a": float("nan")}, {"a": {(1, 2): 3}}, {"a": object()}, {"a": "\\u0000"}],
    ids=["zero", "surrogate", "nan", "tuple key", "object", "text that looks like zero"],
)
async def test_no_line_can_take_the_worker_down(app: Fenceline, odd: dict[str, Any]) -> None:
    @app.job()
    async def log_it(ctx: Context) -> None:
        ctx.log("odd \x00", **odd)
        await asyncio.sleep(0)

    async with running(app) as worker:
        job = await app.enqueue("log_it")
        assert (await ended(job)).status == "succeeded"
        assert [line.message for line in await job.logs()] == ["odd \ufffd"]
        assert not worker.done()


def test_stored_json_is_json() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in ("\x00", "\\u0000", "\\\x00", {"a": [float("inf"), {1: 2}]}, cycle, {None: {(1,): 2}}, 10**5000):
        json.loads(stored_json(value))
    assert json.loads(stored_json("\\u0000 \\\\u0000 \\\x00")) == "\\u0000 \\\\u0000 \\\ufffd"


async def test_json_logs_name_the_job(app: Fenceline) -> None:
    lines: list[dict[str, Any]] = []
    formatter = JsonFormatter(worker=7)

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(formatter.format(record)))

    handler = Keep()
    library.addHandler(handler)

    @app.job()
    async def work() -> None:
        library.warning("here")

    try:
        async with running(app):
            job = await app.enqueue("work")
            await job.wait(timeout=seconds_left())
            library.warning("elsewhere")
    finally:
        library.removeHandler(handler)
    first, second = lines
    assert (first["job"], first["kind"], first["attempt"], first["worker"]) == (job.id, "work", 1, 7)
    assert (first["message"], first["level"], first["logger"]) == ("here", "warning", "tests.some.library")
    assert "job" not in second
