"""Runners: workers that use the queue over HTTP only. They register, claim jobs and send heartbeats.

A runner belongs to the token that registered it: no other token can claim or write for it. It gets jobs of the token's
tenant; with a token of platform_admin, jobs of all tenants.
"""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from math import inf
from typing import Annotated, Literal
from uuid import UUID, uuid4, uuid5

from fastapi import Query, Response

from fenceline.database import calls
from fenceline.database.calls.lanes import LaneForRunner
from fenceline.runtime.alarms import FalseAlarms
from fenceline.server import runner_schemas as schemas
from fenceline.server.plan_check import refuse_stale_plans
from fenceline.server.problems import Problem
from fenceline.server.routing import (
    ApiRequest,
    json_response,
    operation,
    read_job_id,
    read_number,
    router,
    value_response,
)

routes = router("runners")

_REQUESTS = UUID("5f0c3c0e-2d6d-4c39-9e0b-6d2f3c9d7a51")
#: Which jobs to claim: suspects, each for its own process (`apart`) or for an idle runner (`alone`); or all others.
Way = Literal["apart", "alone", "any"]
#: Pauses between polls, besides notifications; the last one repeats.
POLL_SECONDS = (0.02, 0.1, 0.5, 1.0)
#: How early to claim from a lane with a rate limit: the database waits for the rest.
RATE_LEAD_SECONDS = 0.025
#: Pause before trying again to end attempts that another transaction has locked.
LEFT_SECONDS = 0.5


def read_runner_id(given: int | str) -> int:
    return read_number("runner", str(given), todo=": register one")


def within(what: str, asked: list[str] | None, bound: frozenset[str] | None) -> list[str] | None:
    """What a runner may serve of what it asks for (None: everything). Raises Problem `forbidden`."""
    if bound is None:
        return asked
    if asked is None:
        return sorted(bound)
    outside = sorted(set(asked) - bound)
    if outside:
        raise Problem("forbidden", f"this token is bound to {what}, but not to {', '.join(outside)}")
    return asked


@routes.post(
    "/v1/runners",
    **operation("runners:claim", status=201, model=schemas.RunnerView, answers={201: {"description": "Registered."}}),
)
async def register(request: ApiRequest, body: schemas.RunnerBody) -> Response:
    """Register a runner; it is online as long as it sends heartbeats."""
    identity = request.identity
    name = body.name or identity.actor
    lanes = within("lanes", body.lanes or None, identity.lanes)
    kinds = within("kinds", body.kinds, identity.kinds)
    options = body.model_dump(exclude={"name", "lanes", "kinds"})
    silent_seconds = request.server.settings.runner_lease_seconds
    runner_id, lease_seconds = await request.call(
        calls.workers.register_runner(
            identity, name, silent_seconds=silent_seconds, lanes=lanes, kinds=kinds, **options
        )
    )
    runner = {
        "id": runner_id, "name": name, "lanes": lanes, "labels": body.labels, "kinds": kinds,
        "tenant": identity.reach, "version": body.version, "lease_seconds": lease_seconds,
    }  # fmt: skip
    return value_response(runner, 201)


@routes.post("/v1/runners/{id}/heartbeat", **operation("runners:claim", "not_found", model=schemas.HeartbeatView))
async def heartbeat(request: ApiRequest, id: str, body: schemas.HeartbeatBody | None = None) -> Response:
    """Renew the lease. 404: the runner was presumed dead, and its jobs went to others; register again."""
    held = None if body is None else body.attempts
    runner_id = read_runner_id(id)
    answer = await request.call(calls.workers.runner_heartbeat(runner_id, request.identity, held))
    if held is None:  # sent by the process that keeps the lease from outside and watches the runner's event loop
        blocked = {}
        if body is not None and body.blocked is not None:
            job_id = None if body.blocked.job is None else read_job_id(body.blocked.job)
            blocked[runner_id] = {"seconds": body.blocked.seconds, "job_id": job_id}
        await request.call(calls.workers.keep_leases([runner_id], blocked))
    return json_response(answer)


@routes.get("/v1/runners/{id}/lanes", **operation("runners:claim", "not_found", model=schemas.RunnerLanesView))
async def lanes(
    request: ApiRequest,
    id: str,
    lane: Annotated[list[str] | None, Query(max_length=1000, description="Repeatable; all if omitted.")] = None,
) -> Response:
    """The lanes that the runner serves, and which of them have jobs for it."""
    asked = within("lanes", lane, request.identity.lanes)
    runner_id, call = read_runner_id(id), request.database.call
    # First, because it refuses somebody else's runner. It knows which jobs this runner may have.
    own = await call(calls.lanes.runner_lanes(runner_id, request.identity, asked, uuid4()))
    ready = {lane.name for lane in own if lane.plain}
    suspects = {lane.name for lane in own if lane.suspects}
    found = await call(calls.lanes.worker_lanes(asked, runner_id))
    pauses = await call(calls.lanes.rate_pauses([lane.name for lane in found if lane.limited]))
    answer = [
        {
            **asdict(lane),
            "ready": lane.name in ready,
            "suspects": lane.name in suspects,
            "pause_seconds": pauses.get(lane.name),
        }
        for lane in found
    ]
    return value_response({"lanes": answer})


@routes.post("/v1/runners/{id}/wait", **operation("runners:claim", "not_found", model=schemas.WaitView))
async def wait(request: ApiRequest, id: str, body: schemas.WaitBody) -> Response:
    """Wait until a lane may have a job. It only makes claims quicker, so poll as well."""
    await request.call(calls.workers.own_runner(read_runner_id(id), request.identity))
    heard = await request.server.ready.wait(within("lanes", body.lanes, request.identity.lanes) or [], body.seconds)
    return value_response({"lanes": sorted(heard)})


@routes.post("/v1/runners/{id}/stop", **operation("runners:claim", "not_found", model=schemas.EndedView))
async def stop(request: ApiRequest, id: str, body: schemas.StopBody | None = None) -> Response:
    """Sign off; jobs that the runner still holds go back to the queue."""
    fail_kinds = [] if body is None else body.fail_kinds
    ended = await request.call(calls.workers.stop_worker(read_runner_id(id), fail_kinds, request.identity))
    return value_response({"ended": ended})


@routes.post("/v1/runners/{id}/crash", **operation("runners:claim", "not_found", model=schemas.EndedView))
async def crash(request: ApiRequest, id: str, body: schemas.CrashBody) -> Response:
    """Report that the runner's process has died, so that its jobs need not wait for the lease to expire."""
    call = calls.workers.report_death(read_runner_id(id), body.model_dump(), request.identity)
    ended = 0
    while True:
        answer = await request.call(call)
        ended += answer["ended"]
        if not answer["left"]:
            return value_response({"ended": ended})
        await asyncio.sleep(LEFT_SECONDS)


@routes.post("/v1/jobs/claim", **operation("runners:claim", "not_found", model=schemas.ClaimView))
async def claim(request: ApiRequest, body: schemas.ClaimBody) -> Response:
    """Claim jobs. Each is an attempt: its id is the fence, and goes with every write as `Fenceline-Attempt`."""
    found = Claim(request, body)
    attempts = await found.run_once()
    if not attempts and body.wait and not body.apart:
        attempts = await found.wait(body.wait)
    if not attempts and body.notify:
        await found.await_jobs(body.notify)
    return json_response(f'{{"attempts": [{", ".join(attempts)}], "suspects": {json.dumps(found.suspects)}}}')


class Claim:
    """One claim request, which may look several times."""

    def __init__(self, request: ApiRequest, body: schemas.ClaimBody) -> None:
        self._request = request
        self._body = body
        self._runner_id = read_runner_id(body.runner_id)
        self._lanes = body.lanes or None
        self._kinds = body.kinds
        # The default is what the runner registered with, which was checked then.
        if self._lanes is not None:
            self._lanes = within("lanes", self._lanes, request.identity.lanes)
        if self._kinds is not None:
            self._kinds = within("kinds", self._kinds, request.identity.kinds)
        self._count = body.count or 1
        # A request id is any text, and unique for its runner only.
        request_id = body.request_id
        self._request_id = uuid4() if request_id is None else uuid5(_REQUESTS, f"{self._runner_id} {request_id}")
        self.suspects = False
        self._could_run_alone = False
        self._with_jobs: list[str] = []
        self._all_have_jobs = False

    async def run_once(self) -> list[str]:
        """Claim from the lanes until there are as many attempts as requested; each is JSON text."""
        lanes: list[LaneForRunner] = await self._request.call(
            calls.lanes.runner_lanes(self._runner_id, self._request.identity, self._lanes, self._request_id)
        )
        self.suspects = any(lane.suspects for lane in lanes)
        self._could_run_alone = any(lane.idle for lane in lanes)
        self._with_jobs = [lane.name for lane in lanes if lane.plain]
        self._all_have_jobs = len(self._with_jobs) == len(lanes)
        found: dict[str, list[str]] = {lane.name: [] for lane in lanes}
        if any(lane.answered for lane in lanes):  # a repeated request: the same answer, and no more
            for lane in lanes:
                if lane.answered:
                    found[lane.name] = await self._claim(lane, self._count)
            return [*chain.from_iterable(found.values())]
        # In random order, so that no lane waits until another is empty; one transaction per lane, as SQL requires.
        # A runner that asks for a single job and holds none runs it alone: a suspect may have waited for that.
        left = self._count
        ways: Sequence[Way] = ("apart",) if self._body.apart else ("alone", "any") if self._count == 1 else ("any",)
        for way in ways:
            for lane in random.sample(lanes, len(lanes)):
                if left and (lane.plain if way == "any" else lane.suspects):
                    found[lane.name] = await self._claim(lane, left, way)
                    left -= len(found[lane.name])
        return [*chain.from_iterable(found.values())]

    async def _claim(self, lane: LaneForRunner, count: int, way: Way = "any") -> list[str]:
        """The attempts; those too large for the claim's reply are read after it has been committed."""
        asked = (self._runner_id, self._request.identity, lane.name, count)
        if way == "apart":
            claim = calls.attempts.claim_apart(*asked, kinds=self._kinds, request_id=lane.request_id)
        else:
            claim = calls.attempts.claim_for_runner(
                *asked, kinds=self._kinds, request_id=lane.request_id, alone=way == "alone"
            )
        found = await self._request.call(claim)
        claimed = [text for text in found if text is not None]
        if len(claimed) < len(found):
            claimed = await self._request.call(calls.attempts.whole_runner_claim(claim))
        return await refuse_stale_plans(self._request, claimed)

    async def await_jobs(self, seconds: float) -> list[str]:
        """Have enqueues notify this server of new jobs. Returns the lanes."""
        return await self._request.call(
            calls.workers.await_jobs(self._runner_id, self._request.identity, self._lanes, seconds)
        )

    async def wait(self, seconds: float) -> list[str]:
        """Try again, for so many seconds, whenever a lane may have a new job or its rate limit allows one."""
        deadline = time.monotonic() + seconds
        lanes: list[str] | None = None
        looks = 0
        alarms = FalseAlarms()
        ready = self._request.server.ready
        while True:
            rate_pause = await self._rate_pause()
            left = max(0.0, deadline - time.monotonic())
            if self._all_have_jobs and rate_pause < inf:  # no notification would help: only the rate limits do
                await ready.rest(min(left, rate_pause))
            elif lanes is None:
                lanes = await self.await_jobs(left)
            else:
                pause = min(left, POLL_SECONDS[min(looks, len(POLL_SECONDS) - 1)], rate_pause)
                if await ready.wait(lanes, pause):
                    alarms.count(false=True)  # if it was not false, the next try is the last anyway
                    await ready.rest(min(left, alarms.pause_seconds, rate_pause))
                looks += 1
            # Neither a runner that is gone nor a server that is stopping must claim jobs.
            if ready.is_closed or await self._request.is_disconnected():
                return []
            attempts = await self.run_once()
            # A runner that could run a suspect learns at once that there is one.
            if attempts or time.monotonic() >= deadline or self._could_run_alone:
                return attempts

    async def _rate_pause(self) -> float:
        """How long the rate limits of lanes with jobs allow no claim; infinite if none does."""
        if not self._with_jobs:
            return inf
        pauses = await self._request.call(calls.lanes.rate_pauses(self._with_jobs))
        return min((max(0.0, due - RATE_LEAD_SECONDS) for due in pauses.values() if due > 0), default=inf)
