"""What a batch handler writes in `ctx.transaction()` and the ends of all its jobs: both, or neither, and once."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.conftest import Connect
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import running

from fenceline import BatchContext, BatchItem, Fenceline, Job, JobFailed, Retry, SyncBatchContext
from fenceline.model.public_id import parse_id

SOON = Retry(max_attempts=3, backoff="fixed", base=0.1)


@dataclass
class Event:
    number: int

    @property
    def is_bad(self) -> bool:
        return self.number % 100 == 7


@pytest.fixture
def ledger(tables: str) -> str:
    """The table `paid` is the ledger; the DSN."""
    return tables


def paid(dsn: str) -> Counter[str]:
    with psycopg.connect(dsn) as connection:
        return Counter(row[0] for row in connection.execute("select job from public.paid"))


async def ended(jobs: list[Job[Any]]) -> Counter[str]:
    return Counter([await job.wait(timeout=seconds_left()) for job in jobs])


@pytest.mark.parametrize("is_async, count", [(True, 4000), (False, 2000)])
async def test_one_in_a_hundred_fails_and_is_retried_alone_and_nothing_is_written_twice(
    ledger: str, count: int, *, is_async: bool
) -> None:
    calls: list[list[int]] = []  # each with the numbers of its jobs' attempts
    tried: Counter[int] = Counter()

    def good(jobs: list[BatchItem[Event]]) -> list[str]:
        """Those to write; the others fail, alone."""
        calls.append([item.attempt for item in jobs])
        tried.update(item.args.number for item in jobs)
        for item in jobs:
            if item.args.is_bad and item.attempt == 1:
                item.fail(ValueError("not yet"))
        return [str(item.args.number) for item in jobs if not (item.args.is_bad and item.attempt == 1)]

    async with Fenceline(ledger) as app:
        app.job(kind="after")(lambda: "all have ended")
        if is_async:

            @app.job(kind="write", batch=100, batch_wait=1.0, retry=SOON)
            async def write(ctx: BatchContext, jobs: list[BatchItem[Event]]) -> None:
                async with ctx.transaction() as conn:
                    await conn.executemany(
                        "insert into public.paid (job) values ($1)", [(number,) for number in good(jobs)]
                    )
        else:

            @app.job(kind="write", batch=100, batch_wait=1.0, retry=SOON)
            def write_blocking(ctx: SyncBatchContext, jobs: list[BatchItem[Event]]) -> None:
                with ctx.transaction() as conn:
                    conn.cursor().executemany(
                        "insert into public.paid (job) values (%s)", [(number,) for number in good(jobs)]
                    )

        async with app.group() as group:
            jobs = await group.enqueue_many("write", [{"number": number} for number in range(count)], retry=SOON)
            last = await group.then("after", {})
        async with running(app):
            assert await last.result(timeout=seconds_left()) == "all have ended"
        bad = [await job.get() for job in jobs[7::100]]
    assert paid(ledger) == Counter(str(number) for number in range(count))
    assert {record.attempt for record in bad} == {2}
    assert tried == Counter({number: 2 if Event(number).is_bad else 1 for number in range(count)})
    assert [call for call in calls if max(call) > 1] == [[2]] * (count // 100), "what has failed has a call of its own"
    assert len(calls) < count / 20


async def test_a_job_that_has_lost_its_claim_undoes_the_call_and_costs_the_others_no_attempt(
    ledger: str, connect: Connect
) -> None:
    operator = await connect()
    calls: list[int] = []

    async with Fenceline(ledger) as app:

        @app.job(batch=5, batch_wait=0.5)
        async def write(ctx: BatchContext, jobs: list[BatchItem[Event]]) -> None:
            calls.append(len(jobs))
            async with ctx.transaction() as conn:
                await conn.executemany(
                    "insert into public.paid (job) values ($1)", [(str(item.args.number),) for item in jobs]
                )
                if len(jobs) == 5:
                    await operator.execute("select fenceline.cancel_job($1, p_force => true)", parse_id(jobs[2].id))

        jobs = await write.enqueue_many([Event(number) for number in range(5)])
        async with running(app):
            assert await ended(jobs) == {"succeeded": 4, "cancelled": 1}
        records = [await job.get() for job in jobs]
    assert paid(ledger) == Counter("0134"), "the cancelled one was undone, the others were written once"
    assert [record.attempt for record in records if record.status == "succeeded"] == [1] * 4
    assert sum(calls) == 9


async def test_what_a_transaction_has_ended_is_final(ledger: str) -> None:
    async with Fenceline(ledger) as app:

        @app.job(batch=2, batch_wait=0.5, retry=1)
        async def write(ctx: BatchContext, jobs: list[BatchItem[Event]]) -> None:
            async with ctx.transaction() as conn:
                await conn.execute("insert into public.paid (job) values ('once')")
                jobs[0].succeed("kept")
                jobs[1].fail("so it is")
            raise RuntimeError("too late to change anything")

        jobs = await write.enqueue_many([Event(number) for number in range(2)])
        async with running(app):
            assert await jobs[0].result(timeout=seconds_left()) == "kept"
            with pytest.raises(JobFailed, match="so it is"):
                await jobs[1].result(timeout=seconds_left())
    assert paid(ledger) == {"once": 1}


async def test_results_belong_to_the_items(ledger: str) -> None:
    async with Fenceline(ledger) as app:

        @app.job(batch=2, batch_wait=0.1, retry=1)
        async def write(ctx: BatchContext, jobs: list[BatchItem[Event]]) -> None:
            async with ctx.transaction() as conn:
                conn.result = len(jobs)

        job = await write.enqueue(Event(1))
        async with running(app):
            with pytest.raises(JobFailed, match=r"item\.succeed\(result\)"):
                await job.result(timeout=seconds_left())


async def test_a_test_drains_batches(ledger: str) -> None:
    """Without waiting for more: all that is due is there."""
    sizes: list[int] = []
    async with Fenceline(ledger) as app:

        @app.job(batch=4, batch_wait=60.0)
        async def write(jobs: list[BatchItem[Event]]) -> None:
            sizes.append(len(jobs))
            await asyncio.sleep(0)

        await write.enqueue_many([Event(number) for number in range(10)])
        assert await app.drain() == 10
    assert sizes == [4, 4, 2]
