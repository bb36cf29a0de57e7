"""What the engine needs of a delivery, which hands out attempts and is told what becomes of them.

The job tables in PostgreSQL are the only truth, however a job reaches a worker. So every delivery ends in the same
functions of the state machine, and every write names the attempt: a late one changes nothing and is `stale`.

Calls that change something wait for an answer however long the database or the server is away, unless they say
otherwise; the lease limits the wait. Each is safe to repeat, and implementations repeat it over broken connections.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from uuid import UUID, uuid4

from fenceline.context.attempt import Attempt, Ending, Report
from fenceline.context.attempt_api import AttemptApi
from fenceline.database.calls.attempts import AttemptEnd
from fenceline.database.calls.lanes import LaneForWorker
from fenceline.database.calls.workers import LeaseNotice

#: `already`: the very same end was accepted before. `stale`: the attempt is gone. `later`: it cannot be accepted yet,
#: because no server with the kind's finalizer answers; send it again.
Verdict = Literal["accepted", "already", "stale", "later"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """What a worker says of itself when it registers."""

    name: str
    host: str
    pid: int
    version: str
    kinds: Mapping[str, Mapping[str, Any]]  # and what their decorators declare
    signatures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of the kinds' handlers
    lanes: Sequence[str] | None = None  # None: all
    labels: Mapping[str, str] | None = None
    lease_seconds: float | None = None  # None: the delivery's default


@dataclass(frozen=True, slots=True)
class Lease:
    worker_id: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A claim of up to `limit` jobs of a lane; repeating the request returns the same attempts."""

    lane: str
    limit: int
    kinds: Sequence[str] | None = None  # None: all that the worker registered
    alone: bool = False  # only suspects, each of which gets a process to itself
    floors: Mapping[int, int] = field(default_factory=dict)  # the highest `seq` seen per priority: where to look from
    wait_seconds: float | None = None  # how long the worker wants to be notified of new jobs
    turn_seconds: float = 0.0  # how long the claim may wait for its turn under the lane's rate limit
    request_id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True, slots=True)
class AttemptNotice:
    """What became of an attempt while its handler ran."""

    attempt_id: UUID
    notice: Literal["cancel", "stale"]  # it is asked to stop, or it is gone
    grace_seconds: float | None = None  # of `cancel`: how long its handler has


@dataclass(frozen=True, slots=True)
class Notices:
    """What to call on notifications. They make things quicker; nothing relies on them."""

    wake: Callable[[str | None], None]  # a lane (None: any) may have jobs or new settings
    cancelled: Callable[[UUID], None]  # an attempt may have to stop: ask the database


class Delivery(Protocol):
    """One worker's way to its jobs."""

    @property
    def cannot(self) -> Sequence[str]:
        """What this delivery cannot do, one line each: logged when the worker starts."""

    @property
    def api(self) -> AttemptApi:
        """What the context of a running handler calls."""

    # The worker ------------------------------------------------------------------------------------------------------

    async def register(self, worker: WorkerRecord) -> Lease:
        """Register the worker under a new id, which all later calls use."""

    async def heartbeat(self, held: Collection[UUID]) -> list[AttemptNotice]:
        """Renew the lease and name all attempts that are held; one try. Raises WorkerLost when the lease is over, and
        FencelineError or OSError when there is no answer.
        """

    async def sign_off(self, fail_kinds: Sequence[str]) -> None:
        """The worker ends: what it still holds goes back, or fails where the kind says so. One try, as above."""

    async def listen(self, notices: Notices) -> None:
        """Pass on notifications until cancelled."""

    @property
    def is_deaf(self) -> bool:
        """Whether no notifications come: then claims need not ask for them, and jobs are found by polling."""

    async def close(self) -> None: ...

    # Claiming --------------------------------------------------------------------------------------------------------

    async def read_lanes(self) -> list[LaneForWorker]:
        """The worker's lanes: their settings, and which of them have jobs. Raises WorkerLost."""

    async def rate_pauses(self, lanes: Sequence[str]) -> Mapping[str, float]:
        """How many seconds until each lane's rate limit allows the next claim; lanes without one are left out."""

    @property
    def turn_seconds(self) -> float:
        """How long a claim may wait at the other end for its turn under a rate limit, while others are sent. 0: claims
        are sent one at a time, when they are due.
        """

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        """Raises WorkerLost, UnknownLane, and DatabaseBusy when another transaction holds the lane."""

    # Attempts --------------------------------------------------------------------------------------------------------

    async def start(self, attempts: Sequence[Attempt], ran_seconds: Sequence[float]) -> list[UUID]:
        """Their handlers started `ran_seconds` ago, or are about to (0). Returns the attempts that are stale."""

    async def check(self, attempts: Sequence[Attempt]) -> list[AttemptNotice]:
        """Which of the attempts are asked to stop, or gone."""

    async def report(self, reports: Sequence[tuple[Attempt, Report]], *, patient: bool = True) -> list[UUID]:
        """Write lines and progress of many attempts at once; returns the attempts that are stale. Lines that are
        refused are lost. Unless patient, raises DatabaseBusy when another transaction holds one of the attempts:
        nothing was written.
        """

    async def finish(self, endings: Sequence[Ending]) -> Mapping[UUID, Verdict]:
        """End attempts; returns verdicts on those that were not simply accepted. Raises DatabaseBusy as above, and
        RefusedError when one of them cannot be stored: then nothing has changed.
        """

    async def crash(self, ending: Ending) -> Verdict:
        """The job killed the process that it had to itself. Raises DatabaseBusy as above."""

    async def find_ends(self, endings: Sequence[Ending]) -> Mapping[UUID, AttemptEnd]:
        """What became of the jobs whose attempts have ended like this, as far as known."""

    async def find_in_use(self, attempts: Sequence[Attempt]) -> set[UUID]:
        """The attempts that another transaction is changing right now."""


class KeptDelivery(Delivery, Protocol):
    """A delivery whose lease another process keeps (ADR 5): `worker.lease_main` is its program."""

    @property
    def leases(self) -> Literal["postgres", "http"]:
        """How that process reaches the leases."""

    @property
    def where(self) -> str:
        """Where the jobs come from, for people to read: without passwords and tokens."""

    @property
    def wants_heartbeats(self) -> bool:
        """Whether the worker itself must say what it holds, although another process keeps its lease."""

    async def environment(self) -> Mapping[str, str]:
        """The environment variables with which another process reaches the same database or server."""


@dataclass(slots=True)
class Death:
    """What became of the jobs of a process that died."""

    ended: int = 0  # how many attempts
    suspects: list[str] = field(default_factory=list)  # jobs that run alone from now on, as far as known
    quarantined: list[str] = field(default_factory=list)  # jobs that failed because it was not the first time


class Leases(Protocol):
    """What the keeper of other processes' leases needs (ADR 5)."""

    async def renew(self, worker_ids: Sequence[int], blocked: Mapping[int, Mapping[str, Any]]) -> list[LeaseNotice]:
        """`blocked`: per worker, for how many `seconds` its loop has been blocked, and by whose handler (`job_id`)."""

    async def maintain(self) -> None:
        """Do the fleet's maintenance until cancelled, unless a server does it."""

    async def report_death(self, worker_id: int, report: Mapping[str, Any]) -> Death:
        """A process has died or is fenced off: give back what it held.

        `report`: lists of attempt ids (`suspects`, `timed_out`, `set_apart`), and the `error`.
        """

    async def sign_off(self, worker_id: int, fail_kinds: Sequence[str]) -> None:
        """A process has ended in good order: give back what it still holds."""

    async def close(self) -> None: ...
