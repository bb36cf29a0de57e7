"""A claim that waits at the other end for its turn under a rate limit holds up nobody else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast
from uuid import uuid4

from tests.support.patience import seconds_left
from tests.worker.fleet import until

from fenceline.context.attempt import Attempt
from fenceline.database.calls.lanes import LaneForWorker
from fenceline.delivery.contract import ClaimRequest, Delivery
from fenceline.engine.claim_policy import ClaimPolicy
from fenceline.engine.finisher import Finisher
from fenceline.engine.places import Places
from fenceline.engine.statistics import RunStatistics
from fenceline.model.outcome import Mode
from fenceline.model.worker_settings import WorkerSettings

TURN_SECONDS = 0.25


class FreePlaces:
    """What the policy asks of the places."""

    waiting = 0
    has_isolation = True
    modes: ClassVar = {"work": Mode.LOOP}

    def __init__(self, free: int) -> None:
        self._free = free
        self.changed = asyncio.Event()
        self.running: dict[Any, Any] = {}
        self.submitted: list[str] = []

    def limit_of(self, _mode: Mode) -> int:
        return 100

    def free(self, _mode: Mode) -> int:
        return self._free

    def submit(self, attempts: Iterable[Attempt]) -> None:
        self.submitted += [attempt.lane for attempt in attempts]


class Lanes:
    """A delivery with a lane under a rate limit, whose claims wait until `turn` is set, and one without."""

    is_deaf = False
    turn_seconds = TURN_SECONDS

    def __init__(self) -> None:
        self.turn = asyncio.Event()
        self.claims: list[ClaimRequest] = []

    async def read_lanes(self) -> list[LaneForWorker]:
        return [
            LaneForWorker(name, None, 100, True, name == "rated", False, True, False, True)
            for name in ("rated", "plain")
        ]

    async def rate_pauses(self, lanes: Sequence[str]) -> Mapping[str, float]:
        return {lane: 0.01 for lane in lanes if lane == "rated"}

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        self.claims.append(request)
        if not request.turn_seconds:
            return []
        await self.turn.wait()
        return [Attempt(request.lane, 1, uuid4(), 1, 1, "work", "{}", "default", 0, 0, 1, None, False, None)]

    def waiting(self) -> list[ClaimRequest]:
        return [claim for claim in self.claims if claim.turn_seconds]

    async def until_claims(self, count: int, *, of: str) -> None:
        async def enough() -> bool:
            return sum(1 for claim in self.claims if claim.lane == of) >= count

        await until(enough, f"{count} claims of lane {of}")


@contextlib.asynccontextmanager
async def claiming(lanes: Lanes, places: FreePlaces) -> AsyncIterator[ClaimPolicy]:
    policy = ClaimPolicy(
        cast("Delivery", lanes),
        WorkerSettings(),
        places=cast("Places", places),
        finisher=Finisher(cast("Delivery", lanes), RunStatistics(), on_sent=lambda: None),
        statistics=RunStatistics(),
        home_lanes={},
        lose=lambda: None,
    )
    running = asyncio.create_task(policy.run())
    try:
        yield policy
        policy.stopping = True
        policy.wake()
        async with asyncio.timeout(seconds_left()):
            await running
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_others_are_claimed_from_meanwhile() -> None:
    lanes, places = Lanes(), FreePlaces(free=8)
    async with claiming(lanes, places):
        await lanes.until_claims(2, of="rated")
        before = len([claim for claim in lanes.claims if claim.lane == "plain"])
        await lanes.until_claims(before + 3, of="plain")
        [waits] = lanes.waiting()
        assert 0 < waits.limit <= 4
        later = lanes.claims[lanes.claims.index(waits) + 1 :]
        assert all(0 < claim.limit <= 8 - waits.limit for claim in later), "its places are taken"
        lanes.turn.set()


async def test_what_comes_after_the_stop_is_not_lost() -> None:
    lanes, places = Lanes(), FreePlaces(free=8)
    async with claiming(lanes, places) as policy:
        await lanes.until_claims(2, of="rated")
        policy.stopping = True
        policy.wake()
        lanes.turn.set()
    assert places.submitted == ["rated"]


async def test_the_last_place_is_never_kept_waiting() -> None:
    lanes, places = Lanes(), FreePlaces(free=1)
    async with claiming(lanes, places):
        await lanes.until_claims(3, of="rated")
        await lanes.until_claims(3, of="plain")
    assert lanes.waiting() == []
