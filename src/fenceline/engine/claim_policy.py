"""Claims jobs, lane by lane, as many as this process can use.

A lane is claimed from when a notification says that there is work, when a poll finds some, and as long as claims come
back full. One poll reads all lanes: their settings, and which of them have jobs. How many to ask for depends on the
jobs: where they take milliseconds, a batch is fetched ahead while the last one runs; where they take longer, or where
the lane has limits, only as many as can start now.

Claims are sent one after another, except those that wait for their turn under a rate limit at the other end: these
run side by side, one per lane.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf

from fenceline.context.attempt import Attempt
from fenceline.delivery.contract import ClaimRequest, Delivery
from fenceline.engine.finisher import Finisher
from fenceline.engine.lane_state import LaneState
from fenceline.engine.places import Places
from fenceline.engine.statistics import RunStatistics
from fenceline.errors import DatabaseBusy, UnknownLane, WorkerLost
from fenceline.model.outcome import Mode
from fenceline.model.worker_settings import WorkerSettings

log = logging.getLogger("fenceline.worker")

#: From this poll of an idle lane on, claims look below the lower bounds too, for jobs that were given back.
FULL_SCAN_POLL = 2
#: Lanes whose jobs take less than this on average are fetched ahead.
QUICK_SECONDS = 0.005
#: The pause between two reads of the lanes that notifications called for.
LANES_PAUSE_SECONDS = 0.1
#: How long the database remembers that this worker waits; it is told again when half of that is over.
WAIT_SECONDS = 60.0
#: How early the next claim under a rate limit is sent: the database waits for the rest.
RATE_LEAD_SECONDS = 0.008
#: How long a lane is left alone that another transaction holds, an open change of its settings say: the others go on.
BUSY_SECONDS = 2.0
#: With so many batches of endings unsent nothing is claimed: if this process died, all those jobs would run again.
UNSENT_BATCHES = 2


class ClaimPolicy:
    def __init__(
        self,
        delivery: Delivery,
        settings: WorkerSettings,
        *,
        places: Places,
        finisher: Finisher,
        statistics: RunStatistics,
        home_lanes: Mapping[str, set[Mode]],
        lose: Callable[[], None],
    ) -> None:
        """`home_lanes`: the lanes of decorators, with the modes of their kinds; `lose`: the lease is over."""
        self._delivery = delivery
        self._settings = settings
        self._places = places
        self._finisher = finisher
        self._statistics = statistics
        self._most_unsent = UNSENT_BATCHES * settings.batch + settings.concurrency
        self._home_lanes = home_lanes
        self._lose = lose
        self._most_kept = {mode: (places.limit_of(mode) - 1) // 2 for mode in Mode}
        self.lanes: dict[str, LaneState] = {}
        self._lanes_due = 0.0
        self._lanes_read_at = -inf
        self._changed = places.changed  # one event for everything that may make a claim worth while
        self._turns: asyncio.TaskGroup | None = None  # of claims that wait for their turn
        self.stopping = False

    def wake(self, lane: str | None = None) -> None:
        """There may be work in a lane (None: in any), or its settings have changed."""
        for state in self.lanes.values():
            if lane is None or state.name == lane:
                state.wake()
        known = self.lanes.get(lane or "")
        if known is None or not known.enabled:
            self._read_lanes_soon()
        self._changed.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._turns:
            while not self.stopping:
                # After a whole batch the next claim goes out before the handlers have their turn on the loop, so that
                # the database works while they do.
                if await self.run_once() < self._settings.batch:
                    await self._rest()

    async def run_once(self) -> int:
        """Look at every lane that is due and claim what there is room for; returns how many were claimed."""
        claimed = 0
        # Jobs first: the database knows the lanes' settings anyway, so a notified worker need not read them first.
        for state in list(self.lanes.values()):
            is_due = self._is_due(state, time.monotonic())
            if not state.enabled or state.asked or self.stopping:
                continue
            # Suspects before others: where slots are few, they would never find one free.
            if state.asks_for_suspects or (state.limited and is_due and state.suspects_since is not None):
                claimed += await self._claim_suspects(state)
            if is_due and not self.stopping:
                claimed += await self._claim_from(state)
        if time.monotonic() >= self._lanes_due and not self.stopping:
            await self._refresh(time.monotonic())
        return claimed

    async def claim_one(self) -> int:
        """Claim a single job from the first lane that has one; a suspect first."""
        await self._refresh(time.monotonic())
        for alone in (True, False):
            for state in self.lanes.values():
                if alone and state.suspects_since is None:
                    continue
                if state.enabled and await self._claim(state, 1, alone=alone):
                    return 1
        if any(state.busy_until > time.monotonic() for state in self.lanes.values()):
            await asyncio.sleep(BUSY_SECONDS)
            return await self.claim_one()  # a lane that was busy may have one
        return 0

    async def claim_beside(self, attempt: Attempt, limit: int) -> int:
        """Claim more jobs of an attempt's kind, for its batch."""
        return await self._claim(self.lanes[attempt.lane], limit, kinds=[attempt.kind]) if limit else 0

    # Claiming --------------------------------------------------------------------------------------------------------

    async def _claim_from(self, state: LaneState) -> int:
        room, shut = self._room(state)
        if room <= 0:
            return 0
        # Never for the last place: a claim that waits would keep it from the other lanes.
        if self._turns is not None and state.rated and self._delivery.turn_seconds > 0 and room > 1:
            self._turns.create_task(self._await_turn(state, room // 2, shut))
            return 0
        return await self._claim_now(state, room, shut)

    async def _await_turn(self, state: LaneState, room: int, shut: frozenset[Mode]) -> None:
        state.asked = room
        try:
            await self._claim_now(state, room, shut, self._delivery.turn_seconds)
        finally:
            state.asked = 0
            self._changed.set()

    async def _claim_now(self, state: LaneState, room: int, shut: frozenset[Mode], turn_seconds: float = 0.0) -> int:
        was_woken, state.was_woken = state.was_woken or state.empty_polls == 0, False
        claimed = await self._claim(state, room, shut=shut, turn_seconds=turn_seconds)
        if claimed or was_woken:
            state.alarms.count(false=not claimed)
        # After a claim that got something in its turn, the next one waits at the other end.
        has_turn = bool(claimed and turn_seconds)
        pause = await self._rate_pause(state, turn_seconds) if claimed < room and not has_turn else 0.0
        now = time.monotonic()
        if claimed:
            state.empty_polls = 0
            state.waits_since = -inf
            state.shut = frozenset()
            state.due_at = now + pause
        else:
            state.shut = shut
            state.waits_since = now
            if pause > 0:
                state.looked_at = now
                state.due_at = now + pause
                return 0
            state.found_nothing(now)
            if was_woken:
                self._read_lanes_soon()  # woken for nothing: another was quicker, or it was about the settings
        return claimed

    async def _rate_pause(self, state: LaneState, turn_seconds: float) -> float:
        """How long the lane's rate limit allows nothing more."""
        if not state.limited or state.rated is False:
            return 0.0
        pauses = await self._delivery.rate_pauses([state.name])
        state.rated = state.name in pauses
        return max(0.0, pauses.get(state.name, 0.0) - max(turn_seconds / 2, RATE_LEAD_SECONDS))

    async def _claim_suspects(self, state: LaneState) -> int:
        """Jobs that shared a process with a crash: they take no place from the others."""
        room = state.suspect_room(self._places, self._settings.isolated)
        if room <= 0:
            return 0
        claimed = await self._claim(state, room, alone=True)
        if claimed < room:  # that was all for now, or the lane has no slot left
            state.asks_for_suspects = False
        if claimed and not self._places.has_isolation:
            log.warning(
                "lane %s: a suspect of a crash runs in this process, because the app cannot be started in another: "
                "say where it is with run_worker(import_name=…)", state.name,
            )  # fmt: skip
        return claimed

    async def _claim(
        self,
        state: LaneState,
        limit: int,
        *,
        alone: bool = False,
        shut: frozenset[Mode] = frozenset(),
        kinds: Sequence[str] | None = None,
        turn_seconds: float = 0.0,
    ) -> int:
        if shut:
            kinds = [kind for kind, mode in self._places.modes.items() if mode not in shut]
        request = ClaimRequest(
            lane=state.name,
            limit=limit,
            kinds=kinds,
            alone=alone,
            floors={} if alone or state.empty_polls >= FULL_SCAN_POLL else state.floors,
            wait_seconds=None if self._delivery.is_deaf or alone else WAIT_SECONDS,
            turn_seconds=turn_seconds,
        )
        try:
            attempts = await self._delivery.claim(request)
        except WorkerLost:
            self._lose()
            return 0
        except UnknownLane:
            self._lanes_due = 0.0  # it was deleted
            return 0
        except DatabaseBusy as error:
            log.warning("lane %s is held by somebody and left alone for a moment: %s", state.name, error)
            state.busy_until = time.monotonic() + BUSY_SECONDS
            return 0
        if attempts:
            self._statistics.claimed += len(attempts)
            state.in_use = True
            if not alone:
                state.modes.update(self._places.modes[attempt.kind] for attempt in attempts)
                for attempt in attempts:
                    state.floors[attempt.priority] = attempt.seq
            self._places.submit(attempts)
        return len(attempts)

    def _room(self, state: LaneState) -> tuple[int, frozenset[Mode]]:
        """How many jobs of a lane to ask for, and the modes whose kinds must wait."""
        if self._finisher.unsent >= self._most_unsent:
            return 0, frozenset()
        asked = sum(other.asked for other in self.lanes.values())
        free = {mode: self._places.free(mode) - asked for mode in state.modes}
        if self._is_quick(state):
            waiting = self._places.waiting
            return (0 if waiting > self._settings.batch else self._settings.batch), frozenset()
        # A lane full of long jobs leaves a place for each of the other lanes, so that their first jobs are not delayed;
        # but less than half of all places.
        busy = {r.attempt.lane for r in self._places.running.values() if not r.attempt.alone}
        others = sum(1 for s in self.lanes.values() if s is not state and s.in_use and s.enabled and s.name not in busy)
        least = 0 if state.name in busy else 1
        open_modes = {
            mode: max(places - min(others, self._most_kept[mode]), min(places, least)) for mode, places in free.items()
        }
        shut = frozenset(mode for mode, places in open_modes.items() if places <= 0)
        return min((places for places in open_modes.values() if places > 0), default=0), shut

    def _is_quick(self, state: LaneState) -> bool:
        """Whether to fetch jobs of a lane ahead: they take no time, and none waits for a place."""
        return (
            not state.limited
            and not state.wanted
            and state.mean_seconds <= QUICK_SECONDS
            and all(self._places.free(mode) > 0 for mode in state.modes if mode != Mode.LOOP)
        )

    def note_run_time(self, lane: str, seconds: float) -> None:
        state = self.lanes.get(lane)
        if state is not None:
            state.mean_seconds += (seconds - state.mean_seconds) * 0.05

    # Polling ---------------------------------------------------------------------------------------------------------

    def _is_due(self, state: LaneState, now: float) -> bool:
        if now < state.busy_until:
            return False
        return now >= state.due_at or bool(state.shut and state.shut - self._room(state)[1])

    def _read_lanes_soon(self) -> None:
        """At once, or a moment after the last read: a flood of notifications must not become a flood of statements."""
        self._lanes_due = min(self._lanes_due, self._lanes_read_at + LANES_PAUSE_SECONDS)

    async def _refresh(self, now: float) -> None:
        """Read the lanes: within one poll interval, changes take effect and jobs without a notification are found."""
        try:
            seen = await self._delivery.read_lanes()
        except WorkerLost:
            self._lose()
            return
        self._lanes_read_at = now
        for lane in seen:
            state = self.lanes.get(lane.name)
            if state is None:
                modes = self._home_lanes.get(lane.name)
                state = LaneState(lane.name, set(modes or self._places.modes.values()), in_use=modes is not None)
                self.lanes[lane.name] = state
            state.update(lane)
            if state.due_at > now and (lane.ready or self._must_say_that_it_waits(state, now)):
                state.due_at = 0.0
        for name in self.lanes.keys() - {lane.name for lane in seen}:
            del self.lanes[name]
        self._hand_back_from({s.name for s in self.lanes.values() if s.wanted or not s.enabled})
        shortest = min((state.poll_seconds for state in self.lanes.values()), default=5.0)
        self._lanes_due = now + shortest * random.uniform(0.9, 1.0)  # noqa: S311 - jitter

    def _must_say_that_it_waits(self, state: LaneState, now: float) -> bool:
        return not self._delivery.is_deaf and now - state.waits_since > WAIT_SECONDS / 2 and state.due_at == inf

    def _hand_back_from(self, lanes: set[str]) -> None:
        """Hand back what was fetched ahead from lanes that are drained, or whose jobs an idle worker could run."""
        if not lanes or self._places.waiting == 0:
            return
        fetched = self._places.take_back()
        back = [attempt for attempt in fetched if attempt.lane in lanes]
        self._places.submit(attempt for attempt in fetched if attempt.lane not in lanes)
        self._finisher.hand_back(back)

    async def _rest(self) -> None:
        """Wait until a lane is due and there is room, or something has changed."""
        now = time.monotonic()
        self._changed.clear()
        waits = [self._lanes_due - now]
        for state in self.lanes.values():
            if not state.enabled or state.asked:
                continue
            if state.asks_for_suspects and state.suspect_room(self._places, self._settings.isolated) > 0:
                waits.append(state.busy_until - now)
            elif self._room(state)[0] > 0:
                waits.append(0.0 if self._is_due(state, now) else max(state.due_at, state.busy_until) - now)
        timeout = min(waits)
        if timeout <= 0 or self.stopping:
            await asyncio.sleep(0)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()
