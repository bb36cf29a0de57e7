"""Delivers outgoing webhooks: claims jobs of kind `fenceline.webhook`, posts the ended job, and finishes them.

Each delivery is a job like any other: fenced, retried with growing delays, seen in lists. Any number of servers may.
"""

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from uuid import UUID, uuid4

import httpcore

from fenceline.client.caller import Caller
from fenceline.database import webhook_calls, worker_calls
from fenceline.database.webhook_calls import KIND, LANE
from fenceline.errors import WorkerLost
from fenceline.model.json_text import stored_json
from fenceline.model.public_id import InvalidId, parse_id
from fenceline.model.signature import SIGNATURE, TIMESTAMP, sign
from fenceline.server.safe_post import Refused, SafePost

log = logging.getLogger("fenceline.server")

POLL_SECONDS = 1.0
LEASE_SECONDS = 60.0
HEARTBEAT_SECONDS = 10.0
AT_ONCE = 20
_GONE = 410


@dataclass(frozen=True, slots=True)
class Ending:
    """How a delivery went: an outcome of `finish_attempts`, with its result or error."""

    outcome: str
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None


class Deliverer:
    def __init__(self, caller: Caller, post: SafePost) -> None:
        self._caller = caller
        self._post = post
        self._worker_id: int | None = None
        self._beat_at = 0.0
        self._running: dict[UUID, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until cancelled: whatever goes wrong once is tried again."""
        while True:
            try:
                await self.run_once()
            except WorkerLost:
                self._worker_id = None
            except Exception:
                log.exception("webhooks: deliveries cannot be claimed")
            await asyncio.sleep(POLL_SECONDS)

    async def run_once(self) -> None:
        """Renew the lease, and claim what waits as far as there is room."""
        await self._beat()
        while len(self._running) < AT_ONCE and await self._caller.call(webhook_calls.has_webhooks()):
            if self._worker_id is None:
                self._worker_id = await self._register()
            rows = await self._caller.call(
                worker_calls.claim_jobs(
                    self._worker_id, LANE, AT_ONCE - len(self._running),
                    request_id=uuid4(), wait_seconds=None, alone=False, floors={}, kinds=[KIND],
                )
            )  # fmt: skip
            if not rows:
                return
            for row in rows:
                job_id, attempt_id, args, tenant = row[0], row[1], json.loads(row[5]), row[6]
                task = asyncio.create_task(self._deliver(job_id, attempt_id, args, tenant), name=str(attempt_id))
                self._running[attempt_id] = task
                task.add_done_callback(lambda task: self._running.pop(UUID(task.get_name()), None))

    async def close(self) -> None:
        """Give back what is under way."""
        for task in [*self._running.values()]:
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        if self._worker_id is not None:
            await self._caller.call(worker_calls.stop_worker(self._worker_id, []))
        await self._post.close()

    async def _register(self) -> int:
        host = socket.gethostname()
        return await self._caller.call(
            worker_calls.register_worker(
                f"server@{host}", lease_seconds=LEASE_SECONDS, kinds=[KIND], lanes=[LANE], host=host, pid=os.getpid(),
                version=version("fenceline"),
            )
        )  # fmt: skip

    async def _beat(self) -> None:
        if self._worker_id is None or time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + HEARTBEAT_SECONDS
        for word in await self._caller.call(worker_calls.heartbeat([self._worker_id])):
            if word.word == "lost":
                self._worker_id = None
            # A cancelled delivery is over in seconds anyway; the fence decides what its end counts for.

    async def _deliver(self, job_id: int, attempt_id: UUID, args: Mapping[str, Any], tenant: str) -> None:
        try:
            ending = await self.send(args, tenant, f"{attempt_id}")
        except Exception as error:
            log.exception("webhooks: a delivery failed in an unexpected way")
            ending = Ending("failed", error={"type": type(error).__name__, "message": str(error)})
        columns: list[list[Any] | None] = [
            [job_id], [attempt_id], [ending.outcome],
            [None if ending.result is None else stored_json(ending.result)],
            [None if ending.error is None else stored_json(ending.error)], None, None, None,
        ]  # fmt: skip
        await self._caller.call(worker_calls.finish_attempts(columns))

    async def send(self, args: Mapping[str, Any], tenant: str, delivery_id: str) -> Ending:
        """One try."""
        try:
            hook_id, job_id = int(args["hook"]), parse_id(str(args["job"]))
        except (KeyError, TypeError, ValueError, InvalidId) as error:
            return _lost("invalid_args", f"args must name hook and job: {error}")
        delivery = await self._caller.call(webhook_calls.webhook_delivery(hook_id, job_id, tenant))
        if delivery is None:
            return _lost("unknown_hook", f"hook {hook_id} does not exist any more")
        if delivery.body is None:
            return _lost("not_found", f"job {args['job']} does not exist any more")
        body = delivery.body.encode()
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json", "User-Agent": "fenceline", "Fenceline-Event": "job.end",
            "Fenceline-Delivery": delivery_id, TIMESTAMP: str(timestamp),
            SIGNATURE: sign(delivery.secret, timestamp, body),
        }  # fmt: skip
        try:
            return _judge(*await self._post.post(delivery.url, body, headers))
        except Refused as error:
            return _lost("refused", str(error))
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, TimeoutError) as error:
            message = str(error) or "no answer in time"
            return Ending("failed", error={"type": type(error).__name__, "message": message})


def _judge(status: int, answer: str) -> Ending:
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own numbers
        return Ending("succeeded", result={"status": status})
    message = f"the receiver answered {status}: {answer[:500]}"
    return (
        _lost("gone", message)
        if status == _GONE
        else Ending("failed", error={"code": "http_status", "message": message})
    )


def _lost(code: str, message: str) -> Ending:
    return Ending("failed_for_good", error={"code": code, "message": message})
