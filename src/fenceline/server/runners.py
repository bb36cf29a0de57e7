"""Runners: workers that reach the queue over HTTP only. They register, claim, and say that they live.

A runner belongs to the token that registered it: nobody else can claim or write for it. It gets jobs of the token's
tenant; one of platform_admin gets everybody's.
"""

import json
import random
import time
from itertools import chain
from uuid import UUID, uuid4, uuid5

from fastapi import Response

from fenceline.database import runner_calls
from fenceline.database.runner_calls import LaneForRunner
from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest, json_response, operation, router
from fenceline.server.runner_schemas import (
    ClaimBody,
    ClaimView,
    CrashBody,
    EndedView,
    HeartbeatBody,
    HeartbeatView,
    RunnerBody,
    RunnerView,
    StopBody,
)

routes = router("runners")

_CODES = ("not_found", "too_large", "unsupported_media_type", "invalid")
_REQUESTS = UUID("5f0c3c0e-2d6d-4c39-9e0b-6d2f3c9d7a51")
#: Between looks for jobs, besides notifications; the last one repeated.
POLL_SECONDS = (0.02, 0.1, 0.5, 1.0)
MOST_ID = 2**31 - 1


def read_runner_id(given: int | str) -> int:
    """Raises Problem `not_found`: a malformed id is answered like a missing one."""
    text = str(given)
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST_ID):
        raise Problem("not_found", f"runner {text[:40]!r} does not exist: register one")
    return int(text)


@routes.post(
    "/v1/runners",
    **operation(
        "runners:claim", "too_large", "unsupported_media_type", "invalid", status=201, model=RunnerView,
        answers={201: {"description": "Registered."}},
    ),
)  # fmt: skip
async def register(request: ApiRequest, body: RunnerBody) -> Response:
    """Register a runner; it is online for as long as its heartbeats come."""
    identity = request.identity
    name = body.name or identity.actor
    lease_seconds = body.lease_seconds or request.server.settings.runner_lease_seconds
    runner_id = await request.caller.call(
        runner_calls.register_runner(
            identity,
            name,
            lease_seconds=lease_seconds,
            lanes=body.lanes or None,
            kinds=body.kinds,
            labels=body.labels,
            host=body.host,
            version=body.version,
        )
    )
    runner = {
        "id": runner_id, "name": name, "lanes": body.lanes or None, "labels": body.labels, "kinds": body.kinds,
        "tenant": identity.reach, "lease_seconds": lease_seconds,
    }  # fmt: skip
    return json_response(json.dumps(runner), 201)


@routes.post("/v1/runners/{id}/heartbeat", **operation("runners:claim", *_CODES, model=HeartbeatView))
async def heartbeat(request: ApiRequest, id: str, body: HeartbeatBody | None = None) -> Response:  # noqa: A002 - the contract's name
    """Renew the lease. 404: the runner was taken for dead and its jobs were given to others; register again."""
    held = None if body is None else body.attempts
    return json_response(await request.caller.call(runner_calls.heartbeat(read_runner_id(id), request.identity, held)))


@routes.post("/v1/runners/{id}/stop", **operation("runners:claim", *_CODES, model=EndedView))
async def stop(request: ApiRequest, id: str, body: StopBody | None = None) -> Response:  # noqa: A002 - as above
    """Sign off: what the runner still holds goes back to the queue."""
    fail_kinds = [] if body is None else body.fail_kinds
    ended = await request.caller.call(runner_calls.stop_runner(read_runner_id(id), request.identity, fail_kinds))
    return json_response(json.dumps({"ended": ended}))


@routes.post("/v1/runners/{id}/crash", **operation("runners:claim", *_CODES, model=EndedView))
async def crash(request: ApiRequest, id: str, body: CrashBody) -> Response:  # noqa: A002 - as above
    """The runner's process has died, and whoever watched it says so: its jobs need not wait for the lease."""
    ended = await request.caller.call(
        runner_calls.report_crash(read_runner_id(id), request.identity, body.suspects, body.error)
    )
    return json_response(json.dumps({"ended": ended}))


@routes.post("/v1/jobs/claim", **operation("runners:claim", *_CODES, model=ClaimView))
async def claim(request: ApiRequest, body: ClaimBody) -> Response:
    """Claim jobs. Each is an attempt: its id is the fence, and goes with every write as `Fenceline-Attempt`."""
    found = Claim(request, body)
    attempts = await found.run_once()
    if not attempts and body.wait:
        attempts = await found.wait(body.wait)
    return json_response(f'{{"attempts": [{", ".join(attempts)}], "suspects": {json.dumps(found.suspects)}}}')


class Claim:
    """One claim request, which may look several times."""

    def __init__(self, request: ApiRequest, body: ClaimBody) -> None:
        self._request = request
        self._body = body
        self._runner_id = read_runner_id(body.runner_id)
        self._lanes = body.lanes or None
        self._count = body.count or 1
        # Any text will do for a request id, and it is the runner's own.
        given = body.request_id
        self._request_id = uuid4() if given is None else uuid5(_REQUESTS, f"{self._runner_id} {given}")
        self.suspects = False
        self._could_run_alone = False

    async def run_once(self) -> list[str]:
        """Attempts of all the lanes, as JSON texts, until there are as many as were asked for."""
        lanes: list[LaneForRunner] = await self._request.caller.call(
            runner_calls.runner_lanes(self._runner_id, self._request.identity, self._lanes, self._request_id)
        )
        self.suspects = any(lane.suspects for lane in lanes)
        self._could_run_alone = any(lane.idle for lane in lanes)
        found: dict[str, list[str]] = {lane.name: [] for lane in lanes}
        if any(lane.answered for lane in lanes):  # asked again: the same answer, and no more
            for lane in lanes:
                if lane.answered:
                    found[lane.name] = await self._claim(lane, self._count)
            return [*chain.from_iterable(found.values())]
        # In a random order, so that no lane has to wait for another to be empty; a transaction each, as they must.
        # Who asks for a single job and holds none runs it alone: a suspect may have waited for that.
        left = self._count
        for alone in (True, False) if self._count == 1 else (False,):
            for lane in random.sample(lanes, len(lanes)):
                if left and (lane.suspects if alone else lane.plain):
                    found[lane.name] = await self._claim(lane, left, alone=alone)
                    left -= len(found[lane.name])
        return [*chain.from_iterable(found.values())]

    async def _claim(self, lane: LaneForRunner, count: int, *, alone: bool = False) -> list[str]:
        return await self._request.caller.call(
            runner_calls.claim(
                self._runner_id,
                self._request.identity,
                lane.name,
                count,
                kinds=self._body.kinds,
                request_id=lane.request_id,
                alone=alone,
            )
        )

    async def wait(self, seconds: float) -> list[str]:
        """Look again whenever a lane may have got a job, for so many seconds."""
        deadline = time.monotonic() + seconds
        lanes = await self._request.caller.call(
            runner_calls.await_jobs(self._runner_id, self._request.identity, self._lanes, seconds)
        )
        looks = 0
        while True:
            # A runner that is gone must not be given jobs.
            if await self._request.is_disconnected():
                return []
            attempts = await self.run_once()
            left = deadline - time.monotonic()
            # Whoever could run a suspect is told at once that there is one.
            if attempts or left <= 0 or self._could_run_alone:
                return attempts
            pause = min(left, POLL_SECONDS[min(looks, len(POLL_SECONDS) - 1)])
            await self._request.server.ready.wait(lanes, pause)
            looks += 1
