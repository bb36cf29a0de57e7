"""Messages on a real Redis, in the form of arq's own queue."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from arq.connections import RedisSettings, create_pool
from arq.worker import Worker, func
from tests.delivery.redis_server import RedisServer
from tests.worker.fleet import until

from fenceline import Fenceline
from fenceline.backends.arq import ArqBackend
from fenceline.backends.chosen import ChosenDelivery, choose_delivery
from fenceline.backends.contract import BackendMisconfigured, BackendUnavailable, Message
from fenceline.model.public_id import format_id


@pytest.fixture
async def backend(redis: RedisServer) -> AsyncIterator[ArqBackend]:
    backend = ArqBackend(redis.url)
    yield backend
    await backend.close()


def message(number: int, *, lane: str = "mail", priority: int = 0) -> Message:
    job_id = (1000 + number) << 22
    return Message(job_id, lane, priority, job_id)


async def test_messages_come_by_priority_then_age_and_once(backend: ArqBackend) -> None:
    messages = [message(3), message(1), message(2, priority=5), message(4, priority=-5), message(5, lane="other")]
    await backend.enqueue(messages)
    await backend.enqueue(messages[:1])  # again, while it is under way
    by_number = {m.job_id: m.job_id >> 22 for m in messages}
    assert [by_number[job_id] for job_id in await backend.receive("mail", 3)] == [1002, 1001, 1003]
    assert [by_number[job_id] for job_id in await backend.receive("mail", 3)] == [1004]
    assert await backend.receive("mail", 3) == []
    assert [by_number[job_id] for job_id in await backend.receive("other", 3)] == [1005]


async def test_who_listens_is_told_of_the_lane_and_goes_on_after_an_outage(
    backend: ArqBackend, redis: RedisServer
) -> None:
    heard: list[str | None] = []
    listening = asyncio.create_task(backend.listen(heard.append))

    async def told() -> object:
        return heard

    await until(told, "a wake-up")
    assert heard.pop() is None  # it is connected: anything may have come before
    await backend.enqueue([message(1)])
    await until(told, "a wake-up")
    assert heard.pop() == "mail"
    redis.kill()
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await backend.enqueue([message(2)])
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await backend.receive("mail", 1)
    redis.start()
    await until(told, "a wake-up")
    assert heard == [None]
    listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listening


async def test_metadata_tells_what_redis_knows(backend: ArqBackend) -> None:
    name = message(1).id
    assert await backend.get_job_metadata(name) is None
    await backend.enqueue([message(1)])
    known = await backend.get_job_metadata(name)
    assert known is not None
    assert (known["in_progress"], known["tries"], known["expires_in_ms"] > 0) == (False, 0, True)
    assert await backend.get_job_result(name) is None


@pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning")  # by arq
async def test_arq_reads_what_we_write(backend: ArqBackend, redis: RedisServer) -> None:
    """By arq's own list, and by its own worker."""
    await backend.enqueue([message(2), message(1, priority=3)])
    pool = await create_pool(RedisSettings.from_dsn(redis.url))
    queued = await pool.queued_jobs(queue_name="fenceline:mail")
    assert [(job.function, job.args) for job in queued] == [("fenceline", (format_id(n << 22),)) for n in (1001, 1002)]
    await pool.aclose()

    seen: list[str] = []

    async def fenceline(ctx: dict[Any, Any], job_id: str) -> None:
        seen.append(job_id)

    worker = Worker(
        [func(fenceline, name="fenceline")], queue_name=backend.queue_name("mail"),
        redis_settings=RedisSettings.from_dsn(redis.url),
        burst=True, poll_delay=0, max_jobs=1, handle_signals=False,
    )  # fmt: skip
    await worker.main()
    await worker.close()
    assert seen == [format_id(n << 22) for n in (1001, 1002)]


async def test_a_message_that_a_dead_arq_worker_had_comes_again(backend: ArqBackend) -> None:
    await backend._redis.set(f"arq:in-progress:{message(1).id}", 1)
    await backend._redis.set(f"arq:retry:{message(1).id}", 99)
    await backend.enqueue([message(1)])
    known = await backend.get_job_metadata(message(1).id)
    assert known is not None
    assert (known["in_progress"], known["tries"]) == (False, 0)


async def test_a_queue_that_is_shared_with_arqs_own_jobs_is_left_to_arq(redis: RedisServer) -> None:
    backend = ArqBackend(redis.url, queue="arq:queue")
    await backend.enqueue([message(1), message(2, lane="other")])
    assert await backend.receive("mail", 10) == []
    assert await backend._redis.zcard("arq:queue") == 2
    await backend.close()


async def test_what_is_not_ours_is_passed_over(backend: ArqBackend) -> None:
    await backend._redis.zadd("fenceline:mail", {b"somebody's": 1, b"\xff": 2})
    assert await backend.receive("mail", 10) == []


@pytest.mark.parametrize(
    "delivery, url, says",
    [
        ("arq", None, "set FENCELINE_REDIS_URL"),
        ("arq", "http://localhost", "not the address of a Redis server"),
        ("redis", "redis://localhost", "'redis' is unknown: use postgres, arq or inline"),
        ("postgres", "nonsense", "not the address of a Redis server"),
        ("arq", "redis://localhost/mail", "'mail' is not the number of a Redis database"),
        ("arq", "redis://localhost?colour=red", "not the address of a Redis server.*colour"),
        ("arq", "rediss://localhost?ssl_cert_reqs=perhaps", "not the address of a Redis server.*perhaps"),
    ],
)
def test_a_wrong_setting_is_said_in_one_line(
    delivery: str, url: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FENCELINE_REDIS_URL", raising=False)
    if url is not None:
        monkeypatch.setenv("FENCELINE_REDIS_URL", url)
    with pytest.raises(BackendMisconfigured, match=says) as raised:
        Fenceline("postgresql://nowhere", delivery=delivery)
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("FENCELINE_DELIVERY", delivery)
    with pytest.raises(BackendMisconfigured, match=says):
        Fenceline("postgresql://nowhere")


@pytest.mark.parametrize(
    "url", ["redis://", "redis://localhost/3", "rediss://u:p@localhost:7000/0", "unix:///a/b?db=2"]
)
def test_the_address_of_a_redis(url: str) -> None:
    ArqBackend(url)


@pytest.mark.parametrize("delivery", ["", "postgres"])
def test_a_variable_that_is_empty_is_not_set(delivery: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCELINE_REDIS_URL", "")
    monkeypatch.setenv("FENCELINE_DELIVERY", delivery)
    assert choose_delivery(None) == ChosenDelivery("postgres")


class Named:
    def __init__(self, name: object) -> None:
        self.name = name

    async def enqueue(self, messages: object) -> None: ...


@pytest.mark.parametrize(
    "delivery, says",
    [
        (Named("pigeon"), "is unknown: use postgres, arq or inline, or a backend's class"),
        (dict, "{} is not a backend"),
        (lambda: None, "None is not a backend"),
        (lambda: Named(7), "is not a backend"),
        (lambda: Named("Carrier Pigeon"), "cannot be called 'Carrier Pigeon'"),
        (lambda: Named("postgres"), "cannot be called 'postgres'"),
    ],
)
def test_what_is_no_backend_is_refused_in_one_line(delivery: Any, says: str) -> None:
    with pytest.raises(BackendMisconfigured, match=says) as raised:
        choose_delivery(delivery)
    assert "\n" not in str(raised.value)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "arq", None)
    with pytest.raises(BackendMisconfigured, match=r"pip install 'fenceline\[arq\]'"):
        Fenceline("postgresql://nowhere", delivery=lambda: ArqBackend("redis://localhost"))
