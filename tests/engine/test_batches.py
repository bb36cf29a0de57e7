"""Kinds whose handler takes many jobs at a time: what one call is given, and what becomes of each of its jobs."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.conftest import Connect
from tests.engine.conftest import Side
from tests.support.patience import come, seconds_left
from tests.worker.fleet import until

from fenceline import BatchContext, BatchItem, Fail, Fenceline, Job, Retry, RetryLater, Snooze, SyncBatchContext
from fenceline.client import batch_handler
from fenceline.model.public_id import parse_id
from fenceline.model.status import Status
from fenceline.worker.in_process import InProcessWorker

#: What is the engine's alone, whoever brings the jobs.
by_a_worker = pytest.mark.parametrize("side", ["worker"], indirect=True)
#: Where a batch is meant to be full, which ends the wait: any machine claims so few jobs in that time.
GATHER_SECONDS = 30.0
SOON = Retry(max_attempts=3, backoff="fixed", base=0.1)


@dataclass
class Event:
    number: int
    name: str = "view"


class Seen:
    """What the calls were given."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.attempts: Counter[int] = Counter()

    def note(self, jobs: list[BatchItem[Event]]) -> None:
        self.sizes.append(len(jobs))
        self.attempts.update(item.args.number for item in jobs)


async def enqueue(side: Side, numbers: range, **options: Any) -> list[Job[Any]]:
    many = [{"number": number} for number in numbers]
    return [await side.producer.enqueue("write", args, retry=SOON, **options) for args in many]


async def statuses(jobs: list[Job[Any]]) -> list[Status]:
    return [await job.wait(timeout=seconds_left()) for job in jobs]


Declare = Callable[[Fenceline, Seen], None]


def declare_async(app: Fenceline, seen: Seen) -> None:
    @app.job(batch=10, batch_wait=GATHER_SECONDS)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)
        await asyncio.sleep(0)
        judge(jobs)


def declare_blocking(app: Fenceline, seen: Seen) -> None:
    @app.job(batch=10, batch_wait=GATHER_SECONDS)
    def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)
        judge(jobs)


def judge(jobs: list[BatchItem[Event]]) -> None:
    for item in jobs:
        assert isinstance(item.args, Event)
        if item.args.number == 3 and item.attempt == 1:
            item.fail("not yet")
        elif item.args.number == 5:
            item.fail(Fail("never"))
        else:
            item.succeed({"number": item.args.number, "name": item.args.name, "id": item.id})


@pytest.mark.parametrize("declare", [declare_async, declare_blocking])
async def test_one_call_runs_many_jobs_and_each_has_its_own_end(side: Side, declare: Declare) -> None:
    seen = Seen()
    declare(side.app, seen)
    jobs = await enqueue(side, range(20))
    async with side.work():
        ends = await statuses(jobs)
    assert Counter(ends) == {"succeeded": 19, "failed": 1}
    assert seen.sizes == [10, 10, 1], "two full batches, and the one that failed alone"
    assert seen.attempts == Counter({**dict.fromkeys(range(20), 1), 3: 2})
    record = await jobs[7].get()
    assert record.result == {"number": 7, "name": "view", "id": jobs[7].id}
    assert (record.attempt, (await jobs[3].get()).attempt) == (1, 2)
    failed = (await jobs[5].get()).error
    assert failed is not None
    assert failed["message"] == "never"


@by_a_worker
async def test_what_a_handler_raises_fails_the_undecided_and_each_is_tried_alone(side: Side) -> None:
    seen = Seen()

    @side.app.job(batch=10, batch_wait=GATHER_SECONDS)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)
        for item in jobs:
            if item.args.number == 4:
                raise ValueError("poison")
            if item.args.number < 4:
                item.succeed(item.args.number)

    jobs = await enqueue(side, range(10))
    async with side.work():
        ends = await statuses(jobs)
    assert Counter(ends) == {"succeeded": 9, "failed": 1}
    assert ends[4] == "failed"
    assert seen.sizes == [10] + [1] * (5 + 3 - 1), "five others once more, and the poison twice"
    assert all(seen.attempts[number] == (1 if number < 4 else 2) for number in range(10) if number != 4)
    assert [(await job.get()).attempt for job in jobs] == [1] * 4 + [3] + [2] * 5


@by_a_worker
async def test_a_batch_waits_for_others_but_not_for_ever(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_handler, "MAX_WAIT_SECONDS", 3600.0)
    seen = Seen()

    @side.app.job(batch=3, batch_wait=3600.0)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)

    @side.app.job(batch=3, batch_wait=0.2)
    async def write_soon(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)

    async with side.work() as worker:
        first = await enqueue(side, range(1))
        await until_gathered(worker, 1)
        assert await statuses([*first, *await enqueue(side, range(1, 3))]) == ["succeeded"] * 3
        assert seen.sizes == [3], "those that came while the first waited are with it"
        single = await side.producer.enqueue("write_soon", {"number": 3})
        assert await single.wait(timeout=seconds_left()) == "succeeded"
    assert seen.sizes == [3, 1]


async def until_gathered(worker: InProcessWorker, count: int) -> None:
    async def gathered() -> bool:
        return worker.engine is not None and worker.engine.running == count

    await until(gathered, f"{count} wait for others")


async def test_a_worker_that_stops_runs_what_has_gathered(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_handler, "MAX_WAIT_SECONDS", 3600.0)
    seen = Seen()

    @side.app.job(batch=10, batch_wait=3600.0)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)

    jobs = await enqueue(side, range(3))
    async with side.work() as worker:
        await until_gathered(worker, 3)
    assert seen.sizes == [3]
    assert [(await job.get()).status for job in jobs] == ["succeeded"] * 3


async def test_a_job_that_does_not_fit_harms_no_other(side: Side, connect: Connect) -> None:
    seen = Seen()

    @side.app.job(batch=5, batch_wait=GATHER_SECONDS)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)

    jobs = await enqueue(side, range(5))
    operator = await connect()
    await operator.execute('update fenceline.job set args = \'{"number": "many"}\' where id = $1', parse_id(jobs[2].id))
    async with side.work():
        ends = await statuses([job for job in jobs if job is not jobs[2]])
        assert ends == ["succeeded"] * 4
    assert seen.sizes == [4]
    assert (await jobs[2].get()).status != "succeeded"


async def test_one_job_is_cancelled_and_the_others_go_on(side: Side) -> None:
    begun = asyncio.Event()

    @side.app.job(batch=3, batch_wait=GATHER_SECONDS)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        begun.set()
        while not any(item.cancelled for item in jobs):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)
        for item in jobs:
            if item.cancelled:
                item.fail(Fail("it was asked to stop"))

    jobs = await enqueue(side, range(3))
    async with side.work():
        await come(begun, "the call has begun")
        await jobs[1].cancel()
        ends = await statuses(jobs)
    assert (ends[0], ends[2]) == ("succeeded", "succeeded")
    assert ends[1] in {"cancelled", "failed"}


@by_a_worker
async def test_each_job_has_its_own_timeout(side: Side) -> None:
    seen, stopped, tried_again = Seen(), asyncio.Event(), asyncio.Event()

    @side.app.job(batch=2, batch_wait=GATHER_SECONDS)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)
        try:
            if seen.attempts[0] == 1:
                await tried_again.wait()
            else:
                tried_again.set()
        except asyncio.CancelledError:
            stopped.set()
            raise

    [short] = await enqueue(side, range(1), timeout=3.0)
    [other] = await enqueue(side, range(1, 2), timeout=3600)
    async with side.work():
        assert await statuses([short, other]) == ["succeeded"] * 2
    assert seen.attempts == {0: 2, 1: 1}
    assert (await short.get()).attempt == 2
    assert not stopped.is_set(), "somebody still waited for the call"


@by_a_worker
async def test_a_call_that_nobody_waits_for_is_stopped(side: Side) -> None:
    seen, stopped = Seen(), asyncio.Event()

    @side.app.job(batch=2, batch_wait=GATHER_SECONDS)
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)
        if jobs[0].attempt == 1:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                stopped.set()
                raise

    jobs = await enqueue(side, range(2), timeout=3.0)
    async with side.work():
        assert await statuses(jobs) == ["succeeded"] * 2
    assert stopped.is_set()
    assert seen.sizes == [2, 1, 1]


@by_a_worker
async def test_steering_words_mean_what_they_mean_elsewhere(side: Side) -> None:
    seen = Seen()

    @side.app.job(batch=4, batch_wait=0.2)  # whom a snooze brings back waits for others once more
    async def write(jobs: list[BatchItem[Event]]) -> None:
        seen.note(jobs)
        for item in jobs:
            if item.args.number == 0 and seen.attempts[0] == 1:
                item.fail(Snooze(0.1))
            if item.args.number == 1 and item.attempt == 1:
                item.fail(RetryLater(after=0.1))

    jobs = await enqueue(side, range(4))
    async with side.work():
        assert await statuses(jobs) == ["succeeded"] * 4
    assert [(await job.get()).attempt for job in jobs] == [1, 2, 1, 1]


@by_a_worker
async def test_a_handler_that_returns_something_is_told(side: Side) -> None:
    @side.app.job(batch=2, batch_wait=GATHER_SECONDS)  # type: ignore[arg-type]  # that is the mistake
    async def write(jobs: list[BatchItem[Event]]) -> list[int]:
        return [item.args.number for item in jobs]

    jobs = await enqueue(side, range(2), max_attempts=1)
    async with side.work():
        assert await statuses(jobs) == ["failed"] * 2
    error = (await jobs[0].get()).error
    assert error is not None
    assert "item.succeed(result)" in error["message"]


async def test_lines_are_written_to_the_log_of_each_job(side: Side) -> None:
    @side.app.job(batch=2, batch_wait=GATHER_SECONDS)
    def write(ctx: SyncBatchContext, jobs: list[BatchItem[Event]]) -> None:
        assert ctx.kind == "write"
        for item in jobs:
            item.log(f"number {item.args.number}", part=item.job.kind)

    jobs = await enqueue(side, range(2))
    async with side.work():
        await statuses(jobs)
    for number, job in enumerate(jobs):
        [line] = await job.logs()
        assert (line.message, line.fields) == (f"number {number}", {"part": "write"})


@by_a_worker
async def test_middleware_runs_once_around_a_call(side: Side) -> None:
    entered: list[str] = []

    @side.app.middleware
    async def around(ctx: Any, call_next: Any) -> Any:
        entered.append(ctx.kind)
        return await call_next()

    @side.app.job(batch=5, batch_wait=GATHER_SECONDS)
    async def write(ctx: BatchContext, jobs: list[BatchItem[Event]]) -> None:
        assert not ctx.cancelled
        assert jobs

    jobs = await enqueue(side, range(5))
    async with side.work():
        assert await statuses(jobs) == ["succeeded"] * 5
    assert entered == ["write"]
