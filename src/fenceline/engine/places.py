"""The places of a worker process: which attempts wait for one, which have one, and how many are free."""

import asyncio
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from uuid import UUID

from fenceline.context.attempt import Attempt
from fenceline.engine.running_attempt import RunningAttempt
from fenceline.engine.threads import Threads
from fenceline.model.outcome import Mode
from fenceline.model.worker_settings import WorkerSettings

#: The pool of suspects: they run in processes of their own, whatever their kind, where the worker can start any.
ALONE = "alone"


class Places:
    def __init__(
        self, settings: WorkerSettings, modes: Mapping[str, Mode], *, has_isolation: bool, together: int = 0
    ) -> None:
        """`modes`: how each kind is run. `has_isolation`: whether handlers can have processes of their own.
        `together`: how many jobs of batches there is room for.
        """
        self.modes = modes
        self.has_isolation = has_isolation
        # The claim policy limits suspects.
        self._limits = {
            Mode.LOOP: settings.concurrency,
            Mode.THREAD: settings.threads,
            Mode.ISOLATED: settings.isolated,
            Mode.BATCH: together,
            ALONE: sys.maxsize,
        }
        self._waiting: dict[str, deque[Attempt]] = {pool: deque() for pool in self._limits}
        self._at_work = dict.fromkeys(self._limits, 0)  # tasks, also of attempts that are over
        self.threads = Threads(self.note_free)
        self.lost_together = 0  # jobs of batches whose call goes on although their attempts are over
        self.running: dict[UUID, RunningAttempt] = {}
        self.work = asyncio.Event()  # an attempt may be started
        self.changed = asyncio.Event()  # a claim may be worth while, or nothing is left

    # Who waits -------------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    def submit(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self._waiting[self._pool(attempt)].append(attempt)
        self.work.set()

    def _pool(self, attempt: Attempt) -> str:
        return ALONE if attempt.alone else self.modes[attempt.kind]

    def next(self, pool: str) -> Attempt | None:
        """The attempt whose turn it is, if there is a place for it."""
        queue = self._waiting[pool]
        return queue.popleft() if queue and self._busy(pool) < self._limits[pool] else None

    def waiting_in(self, pool: str) -> list[Attempt]:
        return list(self._waiting[pool])

    def take_back(self, attempt_id: UUID | None = None) -> list[Attempt]:
        """Take out attempts that have not started (None: all of them), to be handed back."""
        taken = []
        for queue in self._waiting.values():
            back = [attempt for attempt in queue if attempt_id is None or attempt.attempt_id == attempt_id]
            for attempt in back:
                queue.remove(attempt)
            taken += back
        return taken

    # Who has a place -------------------------------------------------------------------------------------------------

    def enter(self, running: RunningAttempt) -> None:
        self.running[running.attempt.attempt_id] = running
        self._at_work[self._pool(running.attempt)] += 1

    def leave(self, running: RunningAttempt) -> None:
        """Its task has ended, so its place is free."""
        self._at_work[self._pool(running.attempt)] -= 1
        self.note_free()

    def note_free(self) -> None:
        self.work.set()
        self.changed.set()

    def limit_of(self, mode: Mode) -> int:
        return self._limits[mode]

    def free(self, mode: Mode) -> int:
        return self._limits[mode] - self._busy(mode) - len(self._waiting[mode])

    def _busy(self, pool: str) -> int:
        lost = self.threads.lost if pool == Mode.THREAD else self.lost_together if pool == Mode.BATCH else 0
        return self._at_work[pool] + lost

    @property
    def lost(self) -> int:
        """Places that handlers keep although their attempts are over."""
        return self.threads.lost + self.lost_together + sum(self._at_work.values()) - len(self.running)

    # All of them -----------------------------------------------------------------------------------------------------

    @property
    def held(self) -> Iterable[Attempt]:
        """The attempts that run or wait to."""
        return chain((running.attempt for running in self.running.values()), *self._waiting.values())

    def count_alone(self, lane: str | None = None) -> int:
        """How many suspects of a lane (None: of any) run or wait to."""
        return sum(1 for attempt in self.held if attempt.alone and lane in (None, attempt.lane))

    @property
    def idle(self) -> bool:
        return not self.running and self.waiting == 0

    async def until_idle(self) -> None:
        while not self.idle:
            self.changed.clear()
            await self.changed.wait()
