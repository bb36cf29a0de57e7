"""The message part of Arq delivery beside arq alone, on one real Redis: what is sent, and received by a worker.

In turn: messages sent one by one and received by arq's own worker, ours and arq's; then ours as Fenceline's workers
send and receive them, in batches. The database's part (a claim, an end) is measured by the others.
"""

import tempfile
from pathlib import Path

import asyncpg
from arq.connections import RedisSettings, create_pool
from arq.worker import Worker, func
from tests.delivery.redis_server import RedisServer

from benchmarks.measure import Result, Size, Work, alternate
from fenceline.backends.arq import FUNCTION, ArqBackend
from fenceline.backends.contract import Message

TARGET = 0.80
BATCH = 500
LANE = "bench"


async def measure(_connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = 500 if size.quick else 2_000
    with tempfile.TemporaryDirectory(prefix="fenceline-bench-", dir="/tmp") as folder:
        redis = RedisServer(Path(folder))
        redis.start()
        backend = ArqBackend(redis.url)
        try:
            return [
                await compare(redis, backend, count, size.rounds(10), batch=batch, note=note)
                for batch, note in ((1, "one by one, received by arq's worker"), (BATCH, "as workers do, in batches"))
            ]
        finally:
            await backend.close()
            redis.stop()


async def compare(redis: RedisServer, backend: ArqBackend, count: int, rounds: int, *, batch: int, note: str) -> Result:
    settings = RedisSettings.from_dsn(redis.url)
    messages = [Message(number << 22, LANE, 0, number << 22) for number in range(1, count + 1)]

    async def ours() -> Work:
        async def work() -> None:
            for first in range(0, count, batch):
                await backend.enqueue(messages[first : first + batch])
            if batch == 1:
                await receive_by_arq(settings, backend.queue_name(LANE), count)
                return
            received = 0
            while received < count:
                received += len(await backend.receive(LANE, batch))

        return work

    async def bare() -> Work:
        pool = await create_pool(settings)

        async def work() -> None:
            for message in messages:
                await pool.enqueue_job(FUNCTION, message.id, _queue_name="bare")
            await receive_by_arq(settings, "bare", count)
            await pool.aclose()

        return work

    fast, slow, ratio = await alternate(ours, bare, rounds=rounds, jobs=count)
    return Result(
        measurement=f"messages through Redis / arq alone: {note}",
        unit="messages/s",
        ours=fast,
        bare=slow,
        ratio=ratio,
        target=TARGET,
    )


async def receive_by_arq(settings: RedisSettings, queue: str, count: int) -> None:
    """With arq's own worker, as quick as it can be had, until it has run them all."""
    seen = 0

    async def note(_ctx: object, _job_id: str) -> None:
        nonlocal seen
        seen += 1

    worker = Worker(
        [func(note, name=FUNCTION, keep_result=0)],  # type: ignore[arg-type]  # named differently, called alike
        queue_name=queue, redis_settings=settings, burst=True, poll_delay=0, max_jobs=100, handle_signals=False,
        log_results=False,
    )  # fmt: skip
    await worker.main()
    await worker.close()
    assert seen == count
