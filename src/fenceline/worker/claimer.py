"""Claims jobs, lane by lane, as many as this process can use.

A lane is claimed from when its interval is over, when a notification says that there is work, and as long as claims
come back full. How many to ask for follows what the jobs turn out to be: where they take milliseconds, a batch is
fetched ahead while the last one runs; where they take longer, or where the lane has limits, only what can start now.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import uuid4

from fenceline.database import worker_calls
from fenceline.database.calls import Call, Row
from fenceline.database.worker_calls import LaneForWorker
from fenceline.errors import WorkerLost
from fenceline.worker.attempt import Attempt
from fenceline.worker.executor import Executor
from fenceline.worker.settings import Counters, WorkerSettings

log = logging.getLogger("fenceline.worker")

#: After going idle a lane is looked at again soon: the wake-up of a job that was just committed may have been missed.
FIRST_POLLS_SECONDS = (0.02, 0.1, 0.5)
#: A lane whose jobs take less than this on average is fetched ahead.
QUICK_SECONDS = 0.005
#: How long the database remembers that this worker waits.
WAIT_SECONDS = 60.0


@dataclass(slots=True)
class LaneState:
    """What the claimer remembers of a lane."""

    name: str
    poll_seconds: float = 5.0
    enabled: bool = True
    limited: bool = False
    suspects: bool = False
    due_at: float = 0.0
    empty_polls: int = 0
    mean_seconds: float = 1.0  # of its jobs' run times; a cautious start
    mode: str = "loop"
    floors: dict[int, int] = field(default_factory=dict)

    def found_nothing(self, now: float) -> None:
        pauses = FIRST_POLLS_SECONDS
        pause = pauses[self.empty_polls] if self.empty_polls < len(pauses) else self.poll_seconds
        self.empty_polls += 1
        self.due_at = now + min(pause, self.poll_seconds)

    def wake(self) -> None:
        self.due_at = 0.0
        self.empty_polls = 0


class Claimer:
    def __init__(
        self,
        worker_id: int,
        settings: WorkerSettings,
        *,
        executor: Executor,
        counters: Counters,
        run: Callable[[Call[list[Row]]], Awaitable[list[Row]]],
        read_lanes: Callable[[], Awaitable[list[LaneForWorker]]],
    ) -> None:
        self._worker_id = worker_id
        self._settings = settings
        self._executor = executor
        self._counters = counters
        self._run_call = run
        self._read_lanes = read_lanes
        self.lanes: dict[str, LaneState] = {}
        self._lanes_due = 0.0
        self._news = executor.changed  # one event for everything that may make a claim worth while
        self.stopping = False
        self.lost = asyncio.Event()

    def wake(self, lane: str | None = None) -> None:
        """There may be work in a lane (None: in any), or its settings have changed."""
        for state in self.lanes.values():
            if lane is None or state.name == lane:
                state.wake()
        self._lanes_due = 0.0
        self._news.set()

    async def run(self) -> None:
        while not self.stopping:
            await self.run_once()
            await self._rest()

    async def run_once(self) -> int:
        """Look at every lane that is due and claim what there is room for; returns how many were claimed."""
        now = time.monotonic()
        if now >= self._lanes_due:
            await self._refresh(now)
        claimed = 0
        for state in list(self.lanes.values()):
            if self.stopping:
                break
            if state.enabled and time.monotonic() >= state.due_at:
                claimed += await self._claim_from(state)
        return claimed

    async def claim_one(self) -> int:
        """Claim a single job from the first lane that has one."""
        await self._refresh(time.monotonic())
        for state in self.lanes.values():
            if state.enabled and await self._claim_from(state):
                return 1
        return 0

    async def _claim_from(self, state: LaneState) -> int:
        alone = state.suspects and self._executor.idle
        room = 1 if alone else self._room(state)
        if room <= 0:
            return 0
        try:
            rows = await self._run_call(
                worker_calls.claim_jobs(
                    self._worker_id,
                    state.name,
                    room,
                    request_id=uuid4(),
                    wait_seconds=WAIT_SECONDS,
                    alone=alone,
                    floors={} if alone else state.floors,
                )
            )
        except WorkerLost:
            self.lost.set()
            self.stopping = True
            return 0
        if not rows:
            state.suspects = state.suspects and not alone
            state.found_nothing(time.monotonic())
            return 0
        attempts = [Attempt(state.name, *row) for row in rows]
        self._counters.claimed += len(attempts)
        state.empty_polls = 0
        state.mode = self._executor.mode_of(attempts[-1].kind)
        for attempt in attempts:
            state.floors[attempt.priority] = attempt.seq
        self._executor.submit(attempts)
        if alone:
            # Alone in its process, as promised: nothing else is claimed until it has ended.
            while not self._executor.idle and not self.stopping:
                self._news.clear()
                await self._news.wait()
        return len(attempts)

    def _room(self, state: LaneState) -> int:
        if state.suspects:
            return 0 if not self._executor.idle else 1  # let the process run empty, so that they get their turn
        free = self._executor.free(state.mode)
        if state.limited or state.mean_seconds > QUICK_SECONDS:
            return max(0, free)
        waiting = self._executor.waiting
        return 0 if waiting >= self._settings.batch else self._settings.batch

    def note_run_time(self, lane: str, seconds: float) -> None:
        state = self.lanes.get(lane)
        if state is not None:
            state.mean_seconds += (seconds - state.mean_seconds) * 0.05

    async def _refresh(self, now: float) -> None:
        """Read the lanes' settings: a change takes effect within one poll interval."""
        seen = await self._read_lanes()
        for lane in seen:
            state = self.lanes.setdefault(lane.name, LaneState(lane.name))
            if lane.enabled and not state.enabled:
                state.wake()
            state.poll_seconds = lane.poll_interval_ms / 1000
            state.enabled = lane.enabled
            state.limited = lane.limited
            state.suspects = lane.suspects
        for name in self.lanes.keys() - {lane.name for lane in seen}:
            del self.lanes[name]
        shortest = min((state.poll_seconds for state in self.lanes.values()), default=5.0)
        self._lanes_due = now + shortest

    async def _rest(self) -> None:
        """Until a lane is due and there is room, or something happens."""
        now = time.monotonic()
        self._news.clear()
        ready = [s for s in self.lanes.values() if s.enabled and now >= s.due_at and self._room(s) > 0]
        if ready or self.stopping:
            await asyncio.sleep(0)
            return
        waits = [s.due_at - now for s in self.lanes.values() if s.enabled and s.due_at > now]
        timeout = max(0.0, min([*waits, self._lanes_due - now]))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._news.wait()
