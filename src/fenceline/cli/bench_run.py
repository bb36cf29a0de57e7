"""The measurement behind `fenceline bench`: a lane, a kind and a worker of its own, and nothing left at the end.

Only the calls are timed, one after the other on one connection, as one producer and one worker would make them.
"""

import json
import os
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median, quantiles
from typing import TypeVar
from uuid import uuid4

from fenceline.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.errors import FencelineError
from fenceline.model.public_id import parse_id

T = TypeVar("T")

#: The lane, the kind of its jobs and their tenant: a name that nobody else serves.
NAME = "fenceline-bench"
BATCH = 500
SINGLES = 300
ARGS = json.dumps({"path": "x" * 71, "number": 12345})  # 100 bytes, as small jobs have
# One attempt: what a killed run held ends when it is swept, and does not wait for its turn again.
OPTIONS = json.dumps({"lane": NAME, "tenant": NAME, "max_attempts": 1})
REASON = "fenceline bench"
# Much longer than any single call should take; after a kill -9 the next run waits this long at most.
LEASE_SECONDS = 60.0
BEAT_SECONDS = 10.0

#: What is done (a measurement's name, or that things are put away), and how many jobs more.
Show = Callable[[str, int], None]


class AlreadyRunning(FencelineError):
    """Two runs would claim each other's jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One measurement: `seconds` is the sum of the calls' own times."""

    measurement: str
    jobs: int
    seconds: float
    jobs_per_second: float
    median_ms: float
    p95_ms: float


class Bench:
    """`await Bench(app, …).run(jobs)`; whatever happens, it tidies up, and a cancel waits for that."""

    def __init__(self, app: Fenceline, *, actor: str, show: Show) -> None:
        self._app = app
        self._actor = actor
        self._show = show
        self._worker_id = 0
        self._beat_at = 0.0
        self._job_ids: list[int] = []  # claimed by us, and not deleted yet

    async def run(self, jobs: int) -> list[Rate]:
        """Raises AlreadyRunning."""
        await self._delete(
            []
        )  # may we, and does the database know how? Better asked before there is anything to delete
        await self._sign_on()
        try:
            await self._make_lane()
            return [
                await self._measure("enqueue, one by one", min(SINGLES, jobs), self._enqueue_one),
                await self._measure("enqueue_many, 500 at a time", jobs, self._enqueue_batch),
                await self._measure("claim + finish, 500 at a time", min(SINGLES, jobs) + jobs, self._work_batch),
            ]
        finally:
            await self._tidy_up()

    async def _register(self) -> None:
        register = calls.workers.register_worker(
            NAME,
            lease_seconds=LEASE_SECONDS,
            kinds=[NAME],
            lanes=[NAME],
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("fenceline"),
        )
        self._worker_id = await self._call(register)
        self._beat_at = time.monotonic()

    async def _sign_on(self) -> None:
        await self._register()
        # Registered first, looked then: of two that start at once, the later one sees the other.
        for other in await self._app.system.workers():
            if other.lanes == [NAME] and other.id < self._worker_id and (other.lease_seconds_left or 0) > 0:
                await self._sign_off(self._worker_id)
                raise AlreadyRunning(
                    f"`fenceline bench` is at work here already (pid {other.pid} on {other.host}): wait until it has "
                    f"ended, or, if it was killed, {other.lease_seconds_left:.0f} s until its lease is over"
                )

    async def _make_lane(self) -> None:
        if await self._call(calls.lanes.describe_lanes(NAME)):  # a run was killed
            await self._take_away_leftovers()
        else:
            await self._call(calls.lanes.set_lane(NAME, {"slots": None}, actor=self._actor, create=True))

    async def _measure(self, name: str, jobs: int, step: Callable[[int], Awaitable[int]]) -> Rate:
        self._show(name, 0)
        seconds: list[float] = []
        done = 0
        while done < jobs:
            await self._beat()
            started = time.perf_counter()
            count = await step(jobs - done)
            seconds.append(time.perf_counter() - started)
            if count == 0:  # somebody else serves every lane and every kind, and took some
                break
            done += count
            self._show(name, count)
        total = sum(seconds)
        p95 = quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
        return Rate(
            measurement=name,
            jobs=done,
            seconds=round(total, 6),
            jobs_per_second=round(done / total, 1),
            median_ms=round(median(seconds) * 1000, 3),
            p95_ms=round(p95 * 1000, 3),
        )

    async def _enqueue_one(self, _left: int) -> int:
        await self._call(calls.enqueue.enqueue(NAME, ARGS, OPTIONS, actor=self._actor, defaults=None, repeatable=False))
        return 1

    async def _enqueue_batch(self, left: int) -> int:
        args = [ARGS] * min(BATCH, left)
        made = await self._call(
            calls.enqueue.enqueue_many(NAME, args, OPTIONS, actor=self._actor, defaults=None, repeatable=False)
        )
        return len(made)

    async def _work_batch(self, _left: int) -> int:
        claim = calls.attempts.claim_jobs(
            self._worker_id, NAME, BATCH, request_id=uuid4(), wait_seconds=None, alone=False, floors={}
        )
        claimed = await self._call(claim)
        ids = [row[0] for row in claimed]
        self._job_ids += ids
        if ids:
            await self._call(calls.attempts.finish_attempts((ids, [row[1] for row in claimed], *[None] * 6)))
        return len(ids)

    async def _tidy_up(self) -> None:
        self._show("tidying up", 0)
        # A call that was cut short may have made or claimed jobs without telling. What the worker holds goes back to
        # the lane as it signs off, and another one finds it all there.
        first = self._worker_id
        await self._register()
        await self._sign_off(first)
        await self._finish_all()
        await self._delete(self._job_ids)
        if await self._call(calls.lanes.describe_lanes(NAME)):
            await self._call(calls.lanes.delete_lane(NAME, actor=self._actor))
        await self._sign_off(self._worker_id)

    async def _take_away_leftovers(self) -> None:
        """Of a run that was killed: its worker's lease is over, but nobody may have swept yet."""
        await self._app.system.sweep()
        await self._finish_all()
        cursor: str | None = None
        found: list[int] = []
        while True:
            page = await self._app.jobs.list(kind=NAME, lane=NAME, limit=BATCH, cursor=cursor)
            found += [parse_id(job.id) for job in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        await self._delete(found)
        self._job_ids.clear()

    async def _finish_all(self) -> None:
        while await self._work_batch(BATCH):
            await self._beat()

    async def _delete(self, job_ids: list[int]) -> None:
        for start in range(0, max(1, len(job_ids)), BATCH):
            chunk = job_ids[start : start + BATCH]
            await self._call(calls.jobs.delete_jobs(chunk, actor=self._actor, reason=REASON))
            self._show("tidying up", len(chunk))

    async def _sign_off(self, worker_id: int) -> None:
        await self._call(calls.workers.stop_worker(worker_id, []))

    async def _beat(self) -> None:
        if time.monotonic() - self._beat_at > BEAT_SECONDS:
            self._beat_at = time.monotonic()
            await self._call(calls.workers.heartbeat([self._worker_id]))

    async def _call(self, call: Call[T]) -> T:
        return await app_parts(self._app).database().call(call)
