"""Delivers outgoing webhooks: a built-in handler of kind `fenceline.webhook`, on the engine that runs all jobs.

Each delivery is a job like any other: fenced, retried with growing delays, shown in lists. Any number of servers may
deliver.
"""

import asyncio
import contextlib
import logging
import random
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpcore

from fenceline.client.app import App
from fenceline.context.context import Context
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.database.calls.webhooks import KIND, LANE
from fenceline.delivery.contract import Notices
from fenceline.delivery.postgres import SqlDelivery
from fenceline.engine.engine import Engine
from fenceline.errors import DatabaseUnavailable, Fail, FencelineError, RefusedError, Snooze, Steering
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.model.signature import SIGNATURE, TIMESTAMP, sign
from fenceline.model.worker_settings import WorkerSettings
from fenceline.runtime.database import Database
from fenceline.server.lane_wakeups import ReadyLanes
from fenceline.server.receivers import Busy, CircuitOpen, Receivers
from fenceline.server.safe_post import Refused, SafePost

T = TypeVar("T")

log = logging.getLogger("fenceline.server")

POLL_SECONDS = 1.0
LEASE_SECONDS = 60.0
AT_ONCE = 20
#: How long a delivery waits if its receiver or tenant has no free place.
BUSY_SECONDS = 4.0
#: On shutdown: for stopping deliveries, and for signing off.
LAST_SECONDS = 1.0
_GONE = 410
_SERVER_ERROR = 500


class Undelivered(RefusedError):
    """This try has failed. No traceback is stored: it would show the server's internals."""

    is_brief = True

    def __init__(self, message: str, *, code: str = "error") -> None:
        super().__init__(message)
        self.code = code


class Undeliverable(Fail):
    """No further try will do better."""

    is_brief = True

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class PatientCalls:
    """Calls over the server's pool, repeated until the database answers, as a worker does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def call(self, call: Call[T]) -> T:
        while True:
            try:
                return await self._database.call(call)
            except DatabaseUnavailable as error:
                log.warning("webhooks: the database cannot be reached yet: %s", error)
                await asyncio.sleep(POLL_SECONDS)

    try_call = call


class WebhookLane(SqlDelivery):
    """The lane of deliveries, over the server's connections."""

    is_deaf = False

    def __init__(self, database: Database, ready: ReadyLanes) -> None:
        super().__init__(PatientCalls(database), PatientCalls(database))
        self._ready = ready

    async def _declare(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing to declare: the kind is built in, and its settings must not be replaced."""

    async def listen(self, notices: Notices) -> None:
        while True:
            heard = bool(await self._ready.wait([LANE], POLL_SECONDS))
            if heard or await self._claims.call(calls.webhooks.has_webhooks()):
                notices.wake(LANE)

    async def close(self) -> None:
        """The connections are the server's."""


class WebhookDeliveries:
    def __init__(self, database: Database, post: SafePost, ready: ReadyLanes) -> None:
        self._database = database
        self._post = post
        self._ready = ready
        self._receivers = Receivers()
        self._app = App("postgresql:///", tracing=False)  # only its handlers are used
        self._app.job(kind=KIND, lane=LANE)(self._deliver)
        self.engine: Engine | None = None

    async def run(self) -> None:
        """Until cancelled; failures are retried. Registers a worker only if there are deliveries."""
        while True:
            try:
                if await self._database.call(calls.webhooks.has_webhooks()):
                    await self._work(once=False)
            except Exception:
                log.exception("webhooks: deliveries cannot be made")
            await asyncio.sleep(POLL_SECONDS)

    async def run_once(self) -> None:
        """Make the deliveries that wait."""
        if await self._database.call(calls.webhooks.has_webhooks()):
            await self._work(once=True)

    async def close(self) -> None:
        await self._post.close()

    async def _work(self, *, once: bool) -> None:
        settings = WorkerSettings(
            lanes=(LANE,), concurrency=AT_ONCE, lease_seconds=LEASE_SECONDS, name=f"server@{socket.gethostname()}"
        )
        engine = self.engine = Engine(self._app, WebhookLane(self._database, self._ready), settings, renews_lease=True)
        await engine.register()
        try:
            if once:
                while await engine.run_next():
                    pass
            else:
                await engine.run()
        finally:
            await self._give_back(engine)
            await engine.close()

    async def _give_back(self, engine: Engine) -> None:
        """Release what is under way when the server stops."""
        engine.hurry()
        with contextlib.suppress(TimeoutError, FencelineError, OSError):
            async with asyncio.timeout(LAST_SECONDS):
                await engine.until_idle()
        if not engine.is_lost:
            with contextlib.suppress(TimeoutError, FencelineError, OSError):
                async with asyncio.timeout(LAST_SECONDS):
                    await engine.sign_off()

    async def _deliver(self, ctx: Context, hook: int, job: str) -> dict[str, Any]:
        try:
            return await self.send(hook, job, ctx.tenant, f"{ctx.attempt_id}")
        except (Steering, Undelivered):
            raise
        except Exception as error:
            log.exception("webhooks: a delivery failed in an unexpected way")
            raise Undelivered(f"{type(error).__name__}: {error}") from None

    async def send(self, hook: int, job: str, tenant: str, delivery_id: str) -> dict[str, Any]:
        """One try. Raises Undelivered, Undeliverable, Snooze."""
        try:
            job_id = parse_id(job)
        except InvalidId as error:
            raise Undeliverable("invalid_args", f"args must name hook and job: {error}") from error
        delivery = await self._database.call(calls.webhooks.webhook_delivery(hook, job_id, tenant))
        if delivery is None:
            raise Undeliverable("unknown_hook", f"hook {hook} does not exist any more")
        if delivery.body is None:
            raise Undeliverable("not_found", f"job {job} does not exist any more")
        body = delivery.body.encode()
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json", "User-Agent": "fenceline", "Fenceline-Event": "job.end",
            "Fenceline-Delivery": delivery_id, TIMESTAMP: str(timestamp),
            SIGNATURE: ",".join(sign(secret, timestamp, body) for secret in delivery.secrets),
        }  # fmt: skip
        try:
            with self._receivers.place(tenant, delivery.url) as note:
                return await self._try(delivery.url, body, headers, note)
        except Busy:
            raise Snooze(BUSY_SECONDS * random.uniform(0.5, 1.5)) from None  # noqa: S311 - jitter
        except CircuitOpen as error:
            raise Undelivered(str(error), code="circuit_open") from error

    async def _try(
        self, url: str, body: bytes, headers: Mapping[str, str], note: Callable[[bool], None]
    ) -> dict[str, Any]:
        try:
            status, answer = await self._post.post(url, body, headers)
        except Refused as error:
            raise Undeliverable("refused", str(error)) from error
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, TimeoutError) as error:
            note(False)
            raise Undelivered(f"{type(error).__name__}: {str(error) or 'no answer in time'}") from error
        note(status < _SERVER_ERROR)  # a refusal is an answer, too
        return _judge(status, answer)


def _judge(status: int, answer: str) -> dict[str, Any]:
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own numbers
        return {"status": status}
    message = f"the receiver answered {status}: {answer[:500]}"
    if status == _GONE:
        raise Undeliverable("gone", message)
    raise Undelivered(message, code="http_status")
