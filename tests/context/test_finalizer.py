"""`@handler.finalizer`: application state and the job's end in one transaction."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Connect
from tests.context.conftest import Work
from tests.context.sample import FLAVOURS
from tests.support.patience import come, seconds_left
from tests.worker.in_process_worker import ended

from fenceline import Context, Fenceline, Retry

anyhow = pytest.mark.parametrize("flavour", FLAVOURS)


async def paid(connect: Connect) -> list[str]:
    connection = await connect()
    return [row["job"] for row in await connection.fetch("select job from public.paid")]


@anyhow
async def test_a_finalizer_is_part_of_the_end(app: Fenceline, work: Work, connect: Connect, flavour: str) -> None:
    async with work():
        ways = ("well", "with_errors", "in_transaction", "fails_once", "fails")
        jobs = {how: await app.enqueue(f"publish.{flavour}", {"how": how}) for how in ways}
        records = {how: await ended(job) for how, job in jobs.items()}
        lines = [line.message for line in await jobs["well"].logs()]
    assert {how: (record.status, record.attempt) for how, record in records.items()} == {
        "well": ("succeeded", 1),
        "with_errors": ("succeeded_with_errors", 1),
        "in_transaction": ("succeeded", 1),
        "fails_once": ("succeeded", 2),
        "fails": ("failed", 3),
    }
    assert sorted(await paid(connect)) == sorted(jobs[how].id for how in ways if how != "fails")
    assert records["well"].result == {"how": "well"}
    assert records["with_errors"].errors == ["a small one"]
    assert records["fails"].error is not None
    assert (records["fails"].error["type"], records["fails"].error["message"]) == ("LookupError", "not published")
    assert lines == ["handled", "finalized"]
    assert records["well"].progress == {"done": 7}


async def test_an_attempt_that_is_gone_is_not_finalized(app: Fenceline, work: Work, connect: Connect) -> None:
    connection = await connect()
    called: list[str] = []
    gone = asyncio.Event()

    async def take() -> None:
        await asyncio.wait_for(connection.execute("delete from fenceline.running"), timeout=seconds_left())
        gone.set()

    @app.job()
    async def lost(ctx: Context, when: str) -> None:
        if when == "before":
            await take()

    @lost.finalizer
    async def finalize(conn: Any, job: Any, args: dict[str, Any]) -> None:
        called.append(args["when"])
        await conn.execute("insert into public.paid (job) values ($1)", job.id)
        await take()  # an attempt whose finalizer runs can be taken at once: nothing waits for user code

    async with work(grace_seconds=3600):
        for when in ("before", "during"):
            gone.clear()
            await app.enqueue("lost", {"when": when})
            await come(gone, "the attempt is gone")
    assert called == ["during"]
    assert await paid(connect) == []


@pytest.mark.parametrize("handler_is_async", [True, False])
async def test_a_finalizer_may_be_of_the_other_kind(
    app: Fenceline, work: Work, connect: Connect, *, handler_is_async: bool
) -> None:
    async def in_async(*, ctx: Context) -> int:
        return 1

    def in_def() -> int:
        return 1

    handler = app.job(kind="other")(in_async if handler_is_async else in_def)

    async def finalize_async(conn: Any, job: Any) -> None:
        await conn.execute("insert into public.paid (job) values ($1)", job.id)

    def finalize_def(conn: Any, job: Any) -> None:
        conn.execute("insert into public.paid (job) values (%s)", (job.id,))

    handler.finalizer(finalize_def if handler_is_async else finalize_async)
    async with work():
        job = await app.enqueue("other")
        assert await job.result(timeout=seconds_left()) == 1
    assert await paid(connect) == [job.id]


async def test_a_failing_finalizer_harms_no_other(app: Fenceline, work: Work, connect: Connect) -> None:
    @app.job(retry=Retry(max_attempts=1))
    async def each(number: int) -> int:
        return number

    @each.finalizer
    async def finalize(conn: Any, job: Any, result: int) -> None:
        await conn.execute("insert into public.paid (job) values ($1)", job.id)
        if result % 5 == 0:
            await conn.execute("select 1/0")

    async with work():
        jobs = await each.enqueue_many([{"number": number} for number in range(40)])
        statuses = [(await ended(job)).status for job in jobs]
    assert [status == "failed" for status in statuses] == [number % 5 == 0 for number in range(40)]
    assert sorted(await paid(connect)) == sorted(job.id for number, job in enumerate(jobs) if number % 5)


def test_a_bad_signature_says_what_is_allowed(app: Fenceline) -> None:
    @app.job(kind="any")
    async def handler() -> None: ...

    for wrong in (lambda con: None, lambda *args: None, lambda **ctx: None, lambda conn, /: None):  # noqa: ARG005 - signatures
        with pytest.raises(TypeError, match="given what its parameters name, which can be conn, connection, ctx, job"):
            handler.finalizer(wrong)
    handler.finalizer(lambda: None)
    with pytest.raises(ValueError, match="kind 'any' has a finalizer already"):
        handler.finalizer(lambda: None)
