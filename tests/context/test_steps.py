"""Durable steps and checkpoints."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from tests.conftest import Connect
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, until_running

from fenceline import Context, Fenceline, Retry
from fenceline.context.steps import hash_of, names_of_uses
from fenceline.errors import Cancelled, InvalidOption

anyhow = pytest.mark.parametrize("flavour", FLAVOURS)
AGAIN = Retry(max_attempts=2, backoff="fixed", base=0.0, jitter=0.0)


async def what_ran(connect: Connect) -> list[str]:
    connection = await connect()
    return [row["what"] for row in await connection.fetch("select what from public.ran order by at")]


@anyhow
async def test_finished_steps_are_not_run_again(app: Fenceline, work: Work, connect: Connect, flavour: str) -> None:
    async with work():
        job = await app.enqueue(f"import.{flavour}", {"fail_at": 2})
        record = await ended(job)
        steps = await job.steps()
    assert record.result == {"stored": 3, "last": "2026-03-03T12:00:00Z"}
    assert await what_ran(connect) == ["load 0", "load 1", "load 2", "store"]
    assert [(step.name, step.status) for step in steps] == [
        ("load", "done"),
        ("load#2", "done"),
        ("load#3", "done"),
        ("store", "done"),
    ]
    assert steps[1].result == {"number": 1, "at": "2026-03-02T12:00:00Z"}
    assert steps[0].token != steps[2].token, "each belongs to the attempt that ran it"
    assert all(step.error is None and step.ran_seconds is not None for step in steps)
    assert [attempt["outcome"] for attempt in await attempts(connect, job.id)] == ["failed", "succeeded"]


async def attempts(connect: Connect, job: str) -> list[Any]:
    connection = await connect()
    return await connection.fetch(
        "select * from fenceline.history where job_id = fenceline.parse_public_id($1) order by token", job
    )


@anyhow
async def test_a_retry_as_a_new_job_goes_on(app: Fenceline, work: Work, connect: Connect, flavour: str) -> None:
    async with work():
        job = await app.enqueue(f"import.{flavour}", {"fail_at": 1}, max_attempts=1)
        assert (await ended(job)).status == "failed"
        steps = await job.steps()
        assert [(step.name, step.status) for step in steps] == [
            ("load", "done"),
            ("load#2", "failed"),
            ("load#3", "listed"),
            ("store", "listed"),
        ]
        assert steps[1].error == {"message": "broken", "type": "LookupError"}
        again = await job.retry()
        record = await ended(again)
        assert record.retry_of == job.id
        assert record.result == {"stored": 3, "last": "2026-03-03T12:00:00Z"}
        assert [step.status for step in await again.steps()] == ["done"] * 4
        assert [step.status for step in await job.steps()] == ["done", "failed", "listed", "listed"]
    assert await what_ran(connect) == ["load 0", "load 1", "load 2", "store"]


@anyhow
async def test_other_arguments_end_the_job(app: Fenceline, work: Work, flavour: str) -> None:
    async with work():
        record = await ended(await app.enqueue(f"change.{flavour}"))
    assert record.error is not None
    assert (record.status, record.error["code"], record.attempt) == ("failed", "step_mismatch", 2)
    assert "step 'charge' was done before with other arguments" in record.error["message"]


@anyhow
async def test_what_a_cancelled_handler_keeps_is_resumed(app: Fenceline, work: Work, flavour: str) -> None:
    async with work():
        job = await app.enqueue(f"resume.{flavour}")
        await until_running(job)
        await job.cancel()
        record = await ended(job)
        assert record.status == "cancelled"
        again = await job.retry()
        assert await again.result(timeout=seconds_left()) == {"row": 8}
        assert (await again.get()).attempt == 2


@dataclass
class Receipt:
    number: int
    tags: set[str]


async def test_results_are_alike_whether_a_step_ran_or_was_skipped(app: Fenceline, work: Work) -> None:
    seen: list[Any] = []
    nothing: dict[str, str] = {}

    def receipt() -> Receipt:
        return Receipt(1, {"a"})

    def undeclared():  # type: ignore[no-untyped-def]  # noqa: ANN202 - the point
        return Receipt(2, {"b"}), (3,)

    def later(number: int) -> Awaitable[Receipt]:
        async def make() -> Receipt:
            return Receipt(number, set())

        return make()

    @app.job(retry=AGAIN)
    async def results(ctx: Context) -> None:
        values = [
            await ctx.step("declared", receipt),
            await ctx.step("undeclared", undeclared),
            await ctx.step("nothing", nothing.get, "there"),
            await ctx.step("partial", partial(later, 4)),
            await asyncio.gather(*(ctx.step("many", str, number) for number in range(5))),
        ]
        seen.append(values)
        if ctx.attempt == 1:
            raise RuntimeError("once more")

    async with work():
        job = await app.enqueue("results")
        assert (await ended(job)).status == "succeeded"
        steps = await job.steps()
    assert seen[0] == seen[1]
    assert seen[0] == [
        Receipt(1, {"a"}),
        [{"number": 2, "tags": ["b"]}, [3]],
        None,
        Receipt(4, set()),
        ["0", "1", "2", "3", "4"],
    ]
    assert [step.name for step in steps[4:]] == ["many", "many#2", "many#3", "many#4", "many#5"]
    assert len({step.token for step in steps}) == 1


def not_what_it_says() -> int:
    return "text"  # type: ignore[return-value]  # the mistake that the test is about


@pytest.mark.parametrize(
    "how, code, message",
    [
        ("large", "too_large", "the result of step 'large' has"),
        ("object", "invalid_result", "the result of step 'object' cannot be kept as JSON"),
        ("nan", "invalid_result", "JSON has no nan"),
        ("wrong", "invalid_result", "the result of step 'wrong' cannot be kept as JSON: 1 validation error for int"),
        ("", "invalid_option", "step name '' is not valid: use text of 1 to 200 characters"),
        ("x" * 201, "invalid_option", "is not valid: use text of 1 to 200 characters"),
        ("checkpoint", "invalid_result", "the checkpoint cannot be kept as JSON"),
        ("result", "invalid_result", "the result of kind 'bad' cannot be written as JSON"),
        ("large result", "too_large", "a result has"),
    ],
)
async def test_what_cannot_be_kept(app: Fenceline, work: Work, how: str, code: str, message: str) -> None:
    values: dict[str, Any] = {"large": lambda: "".join(map(str, range(400_000))), "object": object}
    values |= {"nan": lambda: float("nan"), "wrong": not_what_it_says}

    @app.job(retry=AGAIN)
    async def bad(ctx: Context) -> Any:
        if how == "checkpoint":
            await ctx.checkpoint(object())
        if how == "result":
            return object()
        if how == "large result":
            return "".join(map(str, range(400_000)))
        await ctx.step(how, values.get(how, str))
        return None

    async with work():
        job = await app.enqueue("bad")
        record = await ended(job)
        assert record.error is not None
        assert (record.status, record.error["code"]) == ("failed", code)
        assert message in record.error["message"]
        assert record.attempt == (2 if code == "invalid_option" else 1), "the same again will not fit better"
        assert [step.status for step in await job.steps()] == (["failed"] if how in values else [])


async def test_cancel_is_heeded_between_steps_but_not_what_has_run(app: Fenceline, work: Work) -> None:
    asked = asyncio.Event()
    told: list[str] = []

    @app.job()
    async def stop(ctx: Context) -> None:
        async def slow() -> str:
            await asked.wait()
            while not ctx.cancelled:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.01)
            return "kept"

        assert await ctx.step("slow", slow) == "kept"
        for name in ("progress", "step", "phase", "step"):
            try:
                await (ctx.progress(1) if name == "progress" else getattr(ctx, name)("next", *[str][: name == "step"]))
                told.append("went on")
            except Cancelled:
                told.append(name)
        await ctx.checkpoint("what there is")
        raise Cancelled

    async with work():
        job = await app.enqueue("stop")
        await until_running(job)
        await job.cancel()
        asked.set()
        assert (await ended(job)).status == "cancelled"
        assert [(step.name, step.status, step.result) for step in await job.steps()] == [("slow", "done", "kept")]
    assert told == ["progress", "step", "phase", "step"], "every call says so once, and work is not begun at all"


def test_uses_of_a_name_are_numbered() -> None:
    assert names_of_uses(["a", "b", "a", "a#2", "a"]) == ["a", "b", "a#2", "a#2#2", "a#3"]
    assert names_of_uses(["a#2", "a", "a"]) == ["a#2", "a", "a#3"]
    with pytest.raises(InvalidOption):
        names_of_uses(["x" * 199, "x" * 199])


def test_arguments_have_the_same_hash_in_every_process() -> None:
    code = (
        "from fenceline.context.steps import hash_of; from dataclasses import make_dataclass;"
        "from pathlib import Path; Box = make_dataclass('Box', ['tags']);"
        "print(hash_of(({'a', 'b', 'c', ('d', 1)}, Box({'x', 'y', 'z'}), b'\\xff', '\\ud800', object()),"
        " {'k': [frozenset('pqrs')], 'path': Path('/a')}))"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(hashes) == 1
    assert hash_of((1,), {}) != hash_of((2,), {})
    assert hash_of(({"a": 1, "b": 2},), {}) == hash_of(({"b": 2, "a": 1},), {})
    assert hash_of((), {"a": 1, "b": 2}) == hash_of((), {"b": 2, "a": 1})
    assert hash_of(([1, 2],), {}) != hash_of(([2, 1],), {})
