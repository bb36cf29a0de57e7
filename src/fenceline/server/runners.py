"""Runners: workers that reach the queue over HTTP only. They register, claim, and say that they live.

A runner belongs to the token that registered it: nobody else can claim or write for it. It gets jobs of the token's
tenant; one of platform_admin gets everybody's.
"""

import asyncio
import json
import random
import time
from dataclasses import asdict
from itertools import chain
from math import inf
from typing import Annotated, Any
from uuid import UUID, uuid4, uuid5

from fastapi import Query, Response

from fenceline.database import calls
from fenceline.database.call import Call
from fenceline.database.calls.lanes import LaneForRunner
from fenceline.runtime.alarms import FalseAlarms
from fenceline.server.plan_check import refuse_stale_plans
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, read_job_id, router
from fenceline.server.runner_schemas import (
    BlockedBody,
    ClaimBody,
    ClaimView,
    CrashBody,
    EndedView,
    HeartbeatBody,
    HeartbeatView,
    RunnerBody,
    RunnerLanesView,
    RunnerView,
    StopBody,
    WaitBody,
    WaitView,
)

routes = router("runners")

_CODES = ("not_found", "too_large", "unsupported_media_type", "invalid")
_REQUESTS = UUID("5f0c3c0e-2d6d-4c39-9e0b-6d2f3c9d7a51")
#: Between looks for jobs, besides notifications; the last one repeated.
POLL_SECONDS = (0.02, 0.1, 0.5, 1.0)
#: A lane with a rate limit is looked at so much before the next claim is due: the database waits for the rest.
RATE_LEAD_SECONDS = 0.025
#: Attempts that somebody holds locked are asked for again after so long.
LEFT_SECONDS = 0.5
MAX_ID = 2**31 - 1


def read_runner_id(given: int | str) -> int:
    """Raises Problem `not_found`: a malformed id is answered like a missing one."""
    text = str(given)
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MAX_ID):
        raise Problem("not_found", f"runner {text[:40]!r} does not exist: register one")
    return int(text)


def within(what: str, asked: list[str] | None, bound: frozenset[str] | None) -> list[str] | None:
    """What a runner may serve, of what it asks for (None: all). Raises Problem `forbidden`."""
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
    **operation(
        "runners:claim", "too_large", "unsupported_media_type", "invalid", status=201, model=RunnerView,
        answers={201: {"description": "Registered."}},
    ),
)  # fmt: skip
async def register(request: ApiRequest, body: RunnerBody) -> Response:
    """Register a runner; it is online as long as it sends heartbeats."""
    identity = request.identity
    name = body.name or identity.actor
    lanes = within("lanes", body.lanes or None, identity.lanes)
    kinds = within("kinds", body.kinds, identity.kinds)
    runner_id, lease_seconds = await request.database.call(
        calls.workers.register_runner(
            identity,
            name,
            lease_seconds=body.lease_seconds,
            silent_seconds=request.server.settings.runner_lease_seconds,
            lanes=lanes,
            kinds=kinds,
            labels=body.labels,
            host=body.host,
            version=body.version,
            tells_starts=body.tells_starts,
            signatures=body.known_signatures(),
        )
    )
    runner = {
        "id": runner_id, "name": name, "lanes": lanes, "labels": body.labels, "kinds": kinds,
        "tenant": identity.reach, "version": body.version, "lease_seconds": lease_seconds,
    }  # fmt: skip
    return json_response(json.dumps(runner), 201)


@routes.post("/v1/runners/{id}/heartbeat", **operation("runners:claim", *_CODES, model=HeartbeatView))
async def heartbeat(request: ApiRequest, id: str, body: HeartbeatBody | None = None) -> Response:
    """Renew the lease. 404: the runner was taken for dead and its jobs were given to others; register again."""
    held = None if body is None else body.attempts
    runner_id = read_runner_id(id)
    answer = await request.database.call(calls.workers.runner_heartbeat(runner_id, request.identity, held))
    if held is None:  # by whoever keeps the lease from outside, and sees the event loop
        blocked = {} if body is None or body.blocked is None else {runner_id: _blocked(body.blocked)}
        await request.database.call(calls.workers.keep_leases([runner_id], blocked))
    return json_response(answer)


def _blocked(said: BlockedBody) -> dict[str, Any]:
    return {"seconds": said.seconds, "job_id": None if said.job is None else read_job_id(said.job)}


@routes.get("/v1/runners/{id}/lanes", **operation("runners:claim", "not_found", "invalid", model=RunnerLanesView))
async def lanes(
    request: ApiRequest,
    id: str,
    lane: Annotated[list[str] | None, Query(max_length=1000, description="Repeatable; all if omitted.")] = None,
) -> Response:
    """The lanes that the runner serves, and which of them have jobs for it."""
    asked = within("lanes", lane, request.identity.lanes)
    runner_id, call = read_runner_id(id), request.database.call
    # What it hears of jobs is about those that it may have; first, because it refuses a runner of somebody else's.
    having = {
        found.name: found for found in await call(calls.lanes.runner_lanes(runner_id, request.identity, asked, uuid4()))
    }
    found = await call(calls.lanes.worker_lanes(asked, runner_id))
    pauses = await call(calls.lanes.rate_pauses([lane.name for lane in found if lane.limited]))
    answer = [
        {
            **asdict(lane),
            "ready": lane.name in having and having[lane.name].plain,
            "suspects": lane.name in having and having[lane.name].suspects,
            "pause_seconds": pauses.get(lane.name),
        }
        for lane in found
    ]
    return json_response(json.dumps({"lanes": answer}))


@routes.post("/v1/runners/{id}/wait", **operation("runners:claim", *_CODES, model=WaitView))
async def wait(request: ApiRequest, id: str, body: WaitBody) -> Response:
    """Wait until a lane may have a job. It only makes claims quicker, so poll as well."""
    read_runner_id(id)
    heard = await request.server.ready.wait(within("lanes", body.lanes, request.identity.lanes) or [], body.seconds)
    return json_response(json.dumps({"lanes": sorted(heard)}))


@routes.post("/v1/runners/{id}/stop", **operation("runners:claim", *_CODES, model=EndedView))
async def stop(request: ApiRequest, id: str, body: StopBody | None = None) -> Response:
    """Sign off; jobs that the runner still holds go back to the queue."""
    fail_kinds = [] if body is None else body.fail_kinds
    ended = await request.database.call(calls.workers.stop_worker(read_runner_id(id), fail_kinds, request.identity))
    return json_response(json.dumps({"ended": ended}))


@routes.post("/v1/runners/{id}/crash", **operation("runners:claim", *_CODES, model=EndedView))
async def crash(request: ApiRequest, id: str, body: CrashBody) -> Response:
    """Report that the runner's process has died, so that its jobs need not wait for the lease to expire."""
    call = calls.workers.report_death(read_runner_id(id), body.model_dump(), request.identity)
    ended = 0
    while True:
        answer = await request.database.call(call)
        ended += answer["ended"]
        if not answer["left"]:
            return json_response(json.dumps({"ended": ended}))
        await asyncio.sleep(LEFT_SECONDS)


@routes.post("/v1/jobs/claim", **operation("runners:claim", *_CODES, model=ClaimView))
async def claim(request: ApiRequest, body: ClaimBody) -> Response:
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

    def __init__(self, request: ApiRequest, body: ClaimBody) -> None:
        self._request = request
        self._body = body
        self._runner_id = read_runner_id(body.runner_id)
        self._lanes = body.lanes or None
        self._kinds = body.kinds
        # What was not asked for is what the runner registered with, and that was within.
        if self._lanes is not None:
            self._lanes = within("lanes", self._lanes, request.identity.lanes)
        if self._kinds is not None:
            self._kinds = within("kinds", self._kinds, request.identity.kinds)
        self._count = body.count or 1
        # Any text will do for a request id, and it is the runner's own.
        given = body.request_id
        self._request_id = uuid4() if given is None else uuid5(_REQUESTS, f"{self._runner_id} {given}")
        self.suspects = False
        self._could_run_alone = False
        self._with_jobs: list[str] = []
        self._have_jobs = False  # all the lanes

    async def run_once(self) -> list[str]:
        """Attempts of all the lanes, as JSON texts, until there are as many as were asked for."""
        lanes: list[LaneForRunner] = await self._request.database.call(
            calls.lanes.runner_lanes(self._runner_id, self._request.identity, self._lanes, self._request_id)
        )
        self.suspects = any(lane.suspects for lane in lanes)
        self._could_run_alone = any(lane.idle for lane in lanes)
        self._with_jobs = [lane.name for lane in lanes if lane.plain]
        self._have_jobs = len(self._with_jobs) == len(lanes)
        found: dict[str, list[str]] = {lane.name: [] for lane in lanes}
        if any(lane.answered for lane in lanes):  # asked again: the same answer, and no more
            for lane in lanes:
                if lane.answered:
                    found[lane.name] = await self._claim(lane, self._count)
            return [*chain.from_iterable(found.values())]
        # In a random order, so that no lane has to wait for another to be empty; a transaction each, as they must.
        # Who asks for a single job and holds none runs it alone: a suspect may have waited for that.
        left = self._count
        if self._body.apart:
            for lane in random.sample(lanes, len(lanes)):
                if left and lane.suspects:
                    found[lane.name] = await self._claim_apart(lane, left)
                    left -= len(found[lane.name])
            return [*chain.from_iterable(found.values())]
        for alone in (True, False) if self._count == 1 else (False,):
            for lane in random.sample(lanes, len(lanes)):
                if left and (lane.suspects if alone else lane.plain):
                    found[lane.name] = await self._claim(lane, left, alone=alone)
                    left -= len(found[lane.name])
        return [*chain.from_iterable(found.values())]

    async def _claim(self, lane: LaneForRunner, count: int, *, alone: bool = False) -> list[str]:
        return await self._whole(
            calls.attempts.claim_for_runner(
                self._runner_id,
                self._request.identity,
                lane.name,
                count,
                kinds=self._kinds,
                request_id=lane.request_id,
                alone=alone,
            )
        )

    async def _claim_apart(self, lane: LaneForRunner, count: int) -> list[str]:
        return await self._whole(
            calls.attempts.claim_apart(
                self._runner_id,
                self._request.identity,
                lane.name,
                count,
                kinds=self._body.kinds,
                request_id=lane.request_id,
            )
        )

    async def _whole(self, claim: Call[list[str | None]]) -> list[str]:
        """The attempts of a claim; what its reply was too small for comes after it has been committed."""
        found = await self._request.database.call(claim)
        claimed = [text for text in found if text is not None]
        if len(claimed) < len(found):
            claimed = await self._request.database.call(calls.attempts.whole_runner_claim(claim))
        return await refuse_stale_plans(self._request, claimed)

    async def await_jobs(self, seconds: float) -> list[str]:
        """Have enqueues notify us of new jobs; the lanes."""
        return await self._request.database.call(
            calls.workers.await_jobs(self._runner_id, self._request.identity, self._lanes, seconds)
        )

    async def wait(self, seconds: float) -> list[str]:
        """Look again whenever a lane may have got a job, or its rate limit allows one, for so many seconds."""
        deadline = time.monotonic() + seconds
        lanes: list[str] | None = None
        looks = 0
        alarms = FalseAlarms()
        while True:
            # A runner that is gone must not be given jobs; neither must one whose server is about to be.
            if self._request.server.ready.is_closed or await self._request.is_disconnected():
                return []
            rate_pause = await self._rate_pause()
            left = max(0.0, deadline - time.monotonic())
            if self._have_jobs and rate_pause < inf:  # there is nothing to be told of: they only await their turn
                await asyncio.sleep(min(left, rate_pause))
            elif lanes is None:
                lanes = await self.await_jobs(left)
            else:
                pause = min(left, POLL_SECONDS[min(looks, len(POLL_SECONDS) - 1)], rate_pause)
                if await self._request.server.ready.wait(lanes, pause):
                    alarms.count(false=True)  # unless the next look finds something, which is the last one then
                    await asyncio.sleep(min(left, alarms.pause_seconds, rate_pause))
                looks += 1
            attempts = await self.run_once()
            # Whoever could run a suspect is told at once that there is one.
            if attempts or time.monotonic() >= deadline or self._could_run_alone:
                return attempts

    async def _rate_pause(self) -> float:
        """How long the rate limits of lanes with jobs allow nothing; infinite, if they do not."""
        if not self._with_jobs:
            return inf
        pauses = await self._request.database.call(calls.lanes.rate_pauses(self._with_jobs))
        return min((max(0.0, due - RATE_LEAD_SECONDS) for due in pauses.values() if due > 0), default=inf)
