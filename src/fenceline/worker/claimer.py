"""Claims jobs, lane by lane, as many as this process can use.

A lane is claimed from when a notification says that there is work, when a poll finds some, and as long as claims come
back full. One poll reads all lanes: their settings, and which of them have jobs. How many to ask for follows what the
jobs turn out to be: where they take milliseconds, a batch is fetched ahead while the last one runs; where they take
longer, or where the lane has limits, only what can start now.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from uuid import uuid4

from fenceline.context.attempt import Attempt
from fenceline.database import worker_calls
from fenceline.database.calls import Call, Row
from fenceline.database.worker_calls import LaneForWorker
from fenceline.errors import UnknownLane, WorkerLost
from fenceline.worker.executor import Executor
from fenceline.worker.settings import Counters, WorkerSettings

log = logging.getLogger("fenceline.worker")

#: After going idle a lane is looked at again soon: the wake-up of a job that was just committed may have been missed.
FIRST_POLLS_SECONDS = (0.02, 0.1, 0.5)
#: From this one on they look below the lower bounds too, for jobs that were given back.
FULL_SCAN_POLL = 2
#: A lane whose jobs take less than this on average is fetched ahead.
QUICK_SECONDS = 0.005
#: How long the database remembers that this worker waits; it is told again when half of that is over.
WAIT_SECONDS = 60.0
#: When suspects have waited for so long, the process runs empty so that they get their turn.
SUSPECTS_PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class LaneState:
    """What the claimer remembers of a lane."""

    name: str
    modes: set[str]  # how the kinds seen in it are run
    in_use: bool = False  # jobs for this worker are to be expected there
    poll_seconds: float = 5.0
    enabled: bool = True
    limited: bool = False
    suspects: bool = False
    wanted: bool = False
    due_at: float = 0.0  # infinite: when a poll finds jobs
    empty_polls: int = 0
    waits_since: float = -inf
    shut: frozenset[str] = frozenset()  # modes without room when it was last found empty
    mean_seconds: float = 1.0  # of its jobs' run times; a cautious start
    floors: dict[int, int] = field(default_factory=dict)

    def found_nothing(self, now: float) -> None:
        pauses = FIRST_POLLS_SECONDS
        self.due_at = now + pauses[self.empty_polls] if self.empty_polls < len(pauses) else inf
        self.empty_polls += 1

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
        hand_back: Callable[[list[Attempt]], None],
        modes: dict[str, str],
        home_lanes: dict[str, set[str]],
        is_deaf: Callable[[], bool] = lambda: False,
    ) -> None:
        """`modes`: how each kind is run; `home_lanes`: the lanes of decorators, with the modes of their kinds."""
        self._worker_id = worker_id
        self._settings = settings
        self._executor = executor
        self._counters = counters
        self._run_call = run
        self._read_lanes = read_lanes
        self._hand_back = hand_back
        self._modes = modes
        self._home_lanes = home_lanes
        self._is_deaf = is_deaf
        limits = {"loop": settings.concurrency, "thread": settings.threads, "isolated": settings.isolated}
        self._most_kept = {mode: (places - 1) // 2 for mode, places in limits.items()}
        self.lanes: dict[str, LaneState] = {}
        self._lanes_due = 0.0
        self._suspects_since: float | None = None
        self._patience = SUSPECTS_PATIENCE_SECONDS
        self._news = executor.changed  # one event for everything that may make a claim worth while
        self.stopping = False
        self.lost = asyncio.Event()

    def wake(self, lane: str | None = None) -> None:
        """There may be work in a lane (None: in any), or its settings have changed."""
        for state in self.lanes.values():
            if lane is None or state.name == lane:
                state.wake()
        known = self.lanes.get(lane or "")
        if known is None or not known.enabled:
            self._lanes_due = 0.0
        self._news.set()

    async def run(self) -> None:
        while not self.stopping:
            await self.run_once()
            await self._rest()

    async def run_once(self) -> int:
        """Look at every lane that is due and claim what there is room for; returns how many were claimed."""
        claimed = 0
        # Jobs first: who was notified need not wait for a look at the settings, the database knows them anyway.
        if not self._runs_empty():
            for state in list(self.lanes.values()):
                if self.stopping:
                    return claimed
                if state.enabled and self._is_due(state, time.monotonic()):
                    claimed += await self._claim_from(state)
        if time.monotonic() >= self._lanes_due and not self.stopping:
            await self._refresh(time.monotonic())
        if self._suspects_since is not None and self._executor.idle:
            claimed += await self._claim_suspects()
        return claimed

    async def claim_one(self) -> int:
        """Claim a single job from the first lane that has one; a suspect first, as it is alone here."""
        await self._refresh(time.monotonic())
        for alone in (True, False):
            for state in self.lanes.values():
                if state.enabled and (state.suspects or not alone) and await self._claim(state, 1, alone=alone):
                    return 1
        return 0

    # Claiming --------------------------------------------------------------------------------------------------------

    async def _claim_from(self, state: LaneState) -> int:
        room, shut = self._room(state)
        if room <= 0:
            return 0
        was_woken = state.empty_polls == 0
        claimed = await self._claim(state, room, shut=shut)
        now = time.monotonic()
        if claimed:
            state.empty_polls = 0
            state.waits_since = -inf
            state.shut = frozenset()
        else:
            state.shut = shut
            state.waits_since = now
            state.found_nothing(now)
            if was_woken:
                self._lanes_due = 0.0  # woken for nothing: another was quicker, or it was about the settings
        return claimed

    async def _claim_suspects(self) -> int:
        """Run the jobs that shared a process with a crash, one at a time, alone in this process."""
        claimed = 0
        for state in [state for state in self.lanes.values() if state.enabled and state.suspects]:
            while not self.stopping and await self._claim(state, 1, alone=True):
                claimed += 1
                while not self._executor.idle and not self.stopping:
                    self._news.clear()
                    await self._news.wait()
            state.suspects = False
        self._suspects_since = None
        return claimed

    async def _claim(
        self, state: LaneState, limit: int, *, alone: bool = False, shut: frozenset[str] = frozenset()
    ) -> int:
        kinds = [kind for kind, mode in self._modes.items() if mode not in shut] if shut else None
        try:
            rows = await self._run_call(
                worker_calls.claim_jobs(
                    self._worker_id,
                    state.name,
                    limit,
                    request_id=uuid4(),
                    wait_seconds=None if self._is_deaf() or alone else WAIT_SECONDS,
                    alone=alone,
                    floors={} if alone or state.empty_polls >= FULL_SCAN_POLL else state.floors,
                    kinds=kinds,
                )
            )
        except WorkerLost:
            self.lost.set()
            self.stopping = True
            return 0
        except UnknownLane:
            self._lanes_due = 0.0  # it was deleted
            return 0
        attempts = [Attempt(state.name, *row) for row in rows]
        if attempts:
            self._counters.claimed += len(attempts)
            state.in_use = True
            state.modes.update(self._executor.mode_of(attempt.kind) for attempt in attempts)
            if not alone:
                for attempt in attempts:
                    state.floors[attempt.priority] = attempt.seq
            self._executor.submit(attempts)
        return len(attempts)

    def _room(self, state: LaneState) -> tuple[int, frozenset[str]]:
        """How many jobs of a lane to ask for, and the modes whose kinds must wait."""
        free = {mode: self._executor.free(mode) for mode in state.modes}
        if self._is_quick(state):
            waiting = self._executor.waiting
            return (0 if waiting >= self._settings.batch else self._settings.batch), frozenset()
        # A lane full of long jobs leaves a place to each of the others, so that it does not delay their first job; but
        # less than half of all.
        busy = {execution.attempt.lane for execution in self._executor.running.values()}
        others = sum(1 for s in self.lanes.values() if s is not state and s.in_use and s.enabled and s.name not in busy)
        least = 0 if state.name in busy else 1
        open_modes = {
            mode: max(places - min(others, self._most_kept[mode]), min(places, least)) for mode, places in free.items()
        }
        shut = frozenset(mode for mode, places in open_modes.items() if places <= 0)
        return min((places for places in open_modes.values() if places > 0), default=0), shut

    def _is_quick(self, state: LaneState) -> bool:
        """Whether jobs of a lane are worth fetching ahead: they are over in no time, and none waits for its place."""
        return (
            not state.limited
            and not state.wanted
            and state.mean_seconds <= QUICK_SECONDS
            and all(self._executor.free(mode) > 0 for mode in state.modes if mode != "loop")
        )

    def note_run_time(self, lane: str, seconds: float) -> None:
        state = self.lanes.get(lane)
        if state is not None:
            state.mean_seconds += (seconds - state.mean_seconds) * 0.05

    # Polling ---------------------------------------------------------------------------------------------------------

    def _is_due(self, state: LaneState, now: float) -> bool:
        return now >= state.due_at or bool(state.shut and state.shut - self._room(state)[1])

    def _runs_empty(self) -> bool:
        """Nothing new is started because suspects have waited too long for a process without others."""
        since = self._suspects_since
        return since is not None and time.monotonic() - since > self._patience and not self._executor.idle

    async def _refresh(self, now: float) -> None:
        """Read the lanes: a change takes effect, and a job that nobody told of is found, within one poll interval."""
        seen = await self._read_lanes()
        for lane in seen:
            state = self.lanes.get(lane.name)
            if state is None:
                modes = self._home_lanes.get(lane.name)
                state = LaneState(lane.name, set(modes or self._modes.values()), in_use=modes is not None)
                self.lanes[lane.name] = state
            if lane.enabled and not state.enabled:
                state.wake()
            state.poll_seconds = lane.poll_interval_ms / 1000
            state.enabled = lane.enabled
            state.limited = lane.limited
            state.suspects = lane.suspects
            state.wanted = lane.wanted
            state.in_use = state.in_use or lane.expected
            if state.due_at > now and (lane.ready or self._must_say_that_it_waits(state, now)):
                state.due_at = 0.0
        for name in self.lanes.keys() - {lane.name for lane in seen}:
            del self.lanes[name]
        self._note_suspects(now)
        self._hand_back_from({s.name for s in self.lanes.values() if s.wanted or not s.enabled})
        shortest = min((state.poll_seconds for state in self.lanes.values()), default=5.0)
        self._lanes_due = now + shortest * random.uniform(0.9, 1.0)  # noqa: S311 - jitter

    def _must_say_that_it_waits(self, state: LaneState, now: float) -> bool:
        return not self._is_deaf() and now - state.waits_since > WAIT_SECONDS / 2 and state.due_at == inf

    def _note_suspects(self, now: float) -> None:
        if not any(state.suspects and state.enabled for state in self.lanes.values()):
            self._suspects_since = None
        elif self._suspects_since is None:
            self._suspects_since = now
            # Not the whole fleet at once.
            self._patience = SUSPECTS_PATIENCE_SECONDS * random.uniform(1, 4)  # noqa: S311 - jitter

    def _hand_back_from(self, lanes: set[str]) -> None:
        """What was fetched ahead goes back where a lane is drained, or where another worker has nothing to do."""
        if not lanes or self._executor.waiting == 0:
            return
        fetched = self._executor.take_back()
        back = [attempt for attempt in fetched if attempt.lane in lanes]
        self._executor.submit(attempt for attempt in fetched if attempt.lane not in lanes)
        if back:
            self._hand_back(back)

    async def _rest(self) -> None:
        """Until a lane is due and there is room, or something happens."""
        now = time.monotonic()
        self._news.clear()
        waits = [self._lanes_due - now]
        if not self._runs_empty():
            waits += [
                0.0 if self._is_due(state, now) else state.due_at - now
                for state in self.lanes.values()
                if state.enabled and self._room(state)[0] > 0
            ]
        timeout = min(waits)
        if timeout <= 0 or self.stopping:
            await asyncio.sleep(0)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._news.wait()
