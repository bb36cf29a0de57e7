"""Arq on Redis: messages in the format of arq's own queue, so that arq's own workers can read them.

A lane is a queue (`fenceline:mail`), a sorted set as in arq. Scores put higher priorities first, then what has waited
longest. `FENCELINE_ARQ_QUEUE` changes the queues' names; without `{lane}` in it all lanes share one queue, from which
only arq's own workers receive, because it may hold jobs that are not ours (`fenceline.worker.arq_part`).
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fenceline.backends.contract import BackendMisconfigured, BackendUnavailable, Message
from fenceline.model.public_id import InvalidId, parse_id

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = logging.getLogger("fenceline.delivery")

URL_VARIABLE = "FENCELINE_REDIS_URL"
QUEUE_VARIABLE = "FENCELINE_ARQ_QUEUE"
QUEUE = "fenceline:{lane}"
#: The name of the function that arq calls with the job's id.
FUNCTION = "fenceline"

#: How long a message lives. One that leads to no claim is sent again long before that.
BODY_MS = 60_000
CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 5.0
RECONNECT_SECONDS = 0.25
#: How far apart two priorities are in the queue's order, in milliseconds: further than any two messages are in time.
PRIORITY_MS = 10_000_000_000
#: Keeps all scores in the past; arq would wait for those in the future.
LOWEST_PRIORITY = -32768
CANNOT = (
    "arq: tenants do not take turns in lanes that are fair; a job for one worker (option runner) reaches it after "
    "others have declined, so does a job of a kind that not all workers of its lane have"
)


class ArqBackend:
    name = "arq"
    cannot = (CANNOT,)

    def __init__(self, url: str | None = None, *, queue: str | None = None) -> None:
        """`url`: else `$FENCELINE_REDIS_URL`; `queue`: else `$FENCELINE_ARQ_QUEUE`. Raises BackendMisconfigured."""
        url = url or os.environ.get(URL_VARIABLE)
        if not url:
            raise BackendMisconfigured(
                f"delivery arq needs a Redis: set {URL_VARIABLE}, for example to redis://localhost:6379"
            )
        self.url = url
        self._queue = queue or os.environ.get(QUEUE_VARIABLE) or QUEUE
        self._redis = _connect(url, ANSWER_SECONDS)
        self._subscriber = _connect(url, None)  # silence is no failure there

    @property
    def is_shared(self) -> bool:
        """Whether all lanes share one queue, with jobs of arq's own."""
        return "{lane}" not in self._queue

    def queue_name(self, lane: str) -> str:
        """Where the messages of a lane are: `queue_name` of an arq worker's settings."""
        return self._queue.replace("{lane}", lane)

    async def enqueue(self, messages: Sequence[Message]) -> None:
        from arq import constants
        from arq.jobs import serialize_job

        now = int(time.time() * 1000)
        with _reachable():
            async with self._redis.pipeline(transaction=False) as pipe:
                for message in messages:
                    body = serialize_job(FUNCTION, (message.id,), {}, None, now)
                    pipe.psetex(constants.job_key_prefix + message.id, BODY_MS, body)
                # What a dead arq worker left behind would keep others from starting the job.
                left = (constants.in_progress_key_prefix, constants.retry_key_prefix)
                pipe.delete(*(prefix + message.id for message in messages for prefix in left))
                for lane, of_lane in groupby(sorted(messages, key=lambda m: m.lane), key=lambda m: m.lane):
                    pipe.zadd(self.queue_name(lane), {message.id: _score(message) for message in of_lane})
                    pipe.publish(self.queue_name(lane), lane)
                await pipe.execute()

    async def get_job_metadata(self, backend_job_id: str) -> Mapping[str, Any] | None:
        from arq import constants

        with _reachable():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.pttl(constants.job_key_prefix + backend_job_id)
                pipe.exists(constants.in_progress_key_prefix + backend_job_id)
                pipe.get(constants.retry_key_prefix + backend_job_id)
                left_ms, in_progress, tries = await pipe.execute()
        if left_ms < 0 and not in_progress:
            return None
        return {"expires_in_ms": max(left_ms, 0), "in_progress": bool(in_progress), "tries": int(tries or 0)}

    async def get_job_result(self, backend_job_id: str) -> Any:
        """Always None: results are in the database. Arq's own would have to be unpickled."""

    async def receive(self, lane: str, limit: int) -> Sequence[int]:
        if self.is_shared:
            return []
        with _reachable():
            popped = await self._redis.zpopmin(self.queue_name(lane), limit)
        return [job_id for name, _score in popped if (job_id := _job_id(name)) is not None]

    async def listen(self, wake: Callable[[str | None], None]) -> None:
        while True:
            try:
                with _reachable():
                    await self._listen(wake)
            except BackendUnavailable as error:
                log.debug("%s", error)  # the sender has warned
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self, wake: Callable[[str | None], None]) -> None:
        async with self._subscriber.pubsub(ignore_subscribe_messages=True) as subscription:
            await subscription.psubscribe(self.queue_name("*"))
            wake(None)  # for what came before
            async for message in subscription.listen():
                wake(None if self.is_shared else message["data"].decode())

    async def close(self) -> None:
        await self._redis.aclose()
        await self._subscriber.aclose()


def _connect(url: str, answer_seconds: float | None) -> "Redis":
    try:
        import arq  # noqa: F401 - an extra
        from redis.asyncio import Redis
        from redis.exceptions import RedisError
    except ImportError as error:
        raise BackendMisconfigured("delivery arq needs the package arq: pip install 'fenceline[arq]'") from error
    try:
        is_socket = url.startswith("unix:")
        database = "" if is_socket else urlsplit(url).path.strip("/")
        keep_alive: dict[str, Any] = {} if is_socket else {"socket_keepalive": True}
        redis: Redis = Redis.from_url(
            url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=answer_seconds, **keep_alive
        )
        # Connects to nobody, but tells of options that there are not.
        redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]  # of redis
    except (ValueError, TypeError, RedisError) as error:
        raise BackendMisconfigured(f"{URL_VARIABLE} is not the address of a Redis server: {error}") from error
    if database and not database.isdecimal():  # it would be taken for 0
        raise BackendMisconfigured(f"{URL_VARIABLE}: {database!r} is not the number of a Redis database")
    return redis


@contextmanager
def _reachable() -> Iterator[None]:
    from redis.exceptions import RedisError

    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise BackendUnavailable(f"Redis cannot be reached: {error}") from error


def _score(message: Message) -> float:
    """The place in the queue; arq orders equal scores by name, and names grow with time."""
    return (message.seq >> 22) - (message.priority - LOWEST_PRIORITY) * PRIORITY_MS


def _job_id(name: bytes) -> int | None:
    """None: the message is not ours."""
    try:
        return parse_id(name.decode())
    except (InvalidId, UnicodeDecodeError):
        return None
