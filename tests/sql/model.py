"""What the SQL functions promise, in plain Python: one dict of jobs, whole seconds, no tables.

The model says where every job is and what may be done with it. Two things it takes from the database, because any
value is right that keeps a law: fences (`attempt_id`) must be new, and a fresh place in the queue (`seq`) must be
behind all others. `tests/sql/machine.py` checks both.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

GRACE_SECONDS = 30
LEASE_SECONDS = 30
STALE_SECONDS = 50  # lane `narrow`
ADMISSION_SECONDS = 2  # how far back a claim looks for keys to admit

SUCCESS = ("succeeded", "succeeded_with_errors")
FINAL = (*SUCCESS, "failed", "cancelled")
#: Where a job is → what fenceline.jobs calls it, and what it waits for.
STATUS = {
    "approval": ("awaiting_approval", None),
    "dependencies": ("waiting", "dependencies"),
    "key": ("waiting", "key"),
    "timer": ("scheduled", None),
    "ready": ("queued", None),
}


class Refused(Exception):  # noqa: N818 - named after what happened
    """The call must fail with this SQLSTATE and change nothing."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


@dataclass(slots=True)
class Attempt:
    worker: int
    claimed_at: int
    active_at: int
    request_id: UUID
    attempt_id: UUID | None = None  # until the database has said it
    started: bool = False
    cancel_deadline: int | None = None


@dataclass(slots=True, kw_only=True)
class Job:
    id: int
    lane: str = "default"
    priority: int = 0
    max_attempts: int = 3
    run_at: int | None = None
    expires_at: int | None = None
    dedupe_key: str | None = None
    resource_lock: str | None = None
    key: str | None = None
    key_limit: int = 1
    after: frozenset[int] = frozenset()
    policy: str = "success"
    needs_approval: bool = False
    place: str = "ready"
    seq: int = 0
    fresh_seq: bool = False  # this step gave it a new seq
    number: int = 0
    token: int = 0
    deaths: int | None = None
    may_expire: bool = True
    claimed_once: bool = False
    holds_key: bool = False
    pending: set[int] = field(default_factory=set)
    attempt: Attempt | None = None
    first_priority: int = 0  # what a retry inherits

    @property
    def unfinished(self) -> bool:
        return self.place not in FINAL


@dataclass(slots=True)
class Worker:
    heartbeat_at: int
    lease_until: int
    stopped: bool = False


@dataclass(slots=True)
class Model:
    now: int = 0
    tail: int = 1 << 63  # behind every seq of the database, until the database has said its own
    draining: bool = False
    jobs: dict[int, Job] = field(default_factory=dict)
    workers: dict[int, Worker] = field(default_factory=dict)
    slots: dict[str, int | None] = field(default_factory=lambda: {"default": None, "narrow": 2})
    enabled: dict[str, bool] = field(default_factory=lambda: {"default": True, "narrow": True})
    requests: dict[str, int] = field(default_factory=dict)  # idempotency key → job
    # key → when somebody asked for a look; in the order in which keys are admitted
    key_checks: dict[str, list[int]] = field(default_factory=dict)
    ended: dict[tuple[int, UUID], str] = field(default_factory=dict)  # attempts that are over → as what

    # Reading -----------------------------------------------------------------------------------------------

    def running(self, **having: object) -> list[Job]:
        """Jobs with a live attempt, by worker and lane."""
        return [
            job
            for job in self.jobs.values()
            if job.attempt is not None
            and having.get("worker", job.attempt.worker) == job.attempt.worker
            and having.get("lane", job.lane) == job.lane
        ]

    def status(self, job: Job) -> tuple[str, str | None]:
        if job.attempt is not None:
            return ("running" if job.attempt.started else "claimed"), None
        return STATUS.get(job.place, (job.place, None))

    def holders(self, key: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.key == key and job.holds_key and job.unfinished]

    def find(self, wanted: Callable[[Job], bool]) -> Job | None:
        return next((job for job in self.jobs.values() if wanted(job)), None)

    # Enqueue -----------------------------------------------------------------------------------------------

    def existing(self, draft: Job, idempotency_key: str | None) -> Job | None:
        """The job that an enqueue must return instead of a new one. Refuses what must not be enqueued."""
        if self.draining:
            raise Refused("FL014")
        if idempotency_key in self.requests:
            return self.jobs[self.requests[idempotency_key]]
        if draft.dedupe_key is not None:
            twin = self.find(lambda job: job.dedupe_key == draft.dedupe_key and job.unfinished and not job.claimed_once)
            if twin is not None:
                return twin
        if draft.resource_lock is not None and self.find(
            lambda job: job.resource_lock == draft.resource_lock and job.unfinished
        ):
            raise Refused("FL013")
        return None

    def add(self, job: Job) -> None:
        self.jobs[job.id] = job
        job.seq, job.first_priority = job.id, job.priority
        job.may_expire = job.expires_at is not None
        job.pending = {other for other in job.after if self.jobs[other].unfinished}
        if job.policy == "success" and any(self.jobs[other].place in FINAL[2:] for other in job.after):
            self.end_unclaimed([job])
        elif job.needs_approval:
            job.place = "approval"
        elif job.pending:
            job.place = "dependencies"
        else:
            self.place(job)

    # Moving ------------------------------------------------------------------------------------------------

    def place(self, job: Job) -> None:
        """Behind the gates of approval and dependencies: run_at, then the key."""
        if job.run_at is not None and job.run_at > self.now:
            job.place = "timer"
        elif job.key is not None and not job.holds_key:
            job.place = "key"
            self.key_checks[job.key].append(self.now)
        else:
            job.place = "ready"

    def move_on(self, job: Job) -> None:
        self.tail += 1
        job.seq, job.fresh_seq = self.tail, True
        self.place(job)

    def end(self, job: Job, outcome: str) -> None:
        """A terminal write and what follows from it, round by round."""
        assert job.unfinished
        job.place, job.attempt = outcome, None
        if job.holds_key and job.key is not None:
            self.key_checks[job.key].append(self.now)
        for waiter in [other for other in self.jobs.values() if job.id in other.pending]:
            waiter.pending.discard(job.id)
            if not waiter.unfinished:
                continue
            if waiter.policy == "success" and outcome not in SUCCESS:
                self.end(waiter, "cancelled")
            elif not waiter.pending and waiter.place == "dependencies":
                self.move_on(waiter)

    def end_unclaimed(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.unfinished and job.attempt is None:
                self.end(job, "cancelled")

    def end_attempt(self, job: Job, asked: str, *, delay: int = 0, deaths: int | None = None) -> None:
        attempt = job.attempt
        assert attempt is not None
        assert attempt.attempt_id is not None
        self.ended[job.id, attempt.attempt_id] = asked
        refunded = asked in ("released", "snoozed", "crashed")
        again = refunded or (asked in ("failed", "lost") and job.number < job.max_attempts)
        if not again or attempt.cancel_deadline is not None:
            failed = asked in ("failed", "lost", "failed_for_good", "quarantined")
            self.end(job, "cancelled" if again else "failed" if failed else asked)
            return
        job.attempt = None
        job.may_expire = job.may_expire and asked == "released" and not attempt.started
        job.number -= refunded
        job.deaths = job.deaths if deaths is None else deaths
        job.run_at = self.now + delay if asked in ("failed", "snoozed") else None
        if asked == "released":
            self.place(job)  # as if it had not been claimed: in its old place in the queue
        else:
            self.move_on(job)

    # Claim -------------------------------------------------------------------------------------------------

    def claim(self, worker: int, lane: str, limit: int, *, alone: bool, request_id: UUID) -> list[Job]:
        dead = self.workers[worker].stopped or self.workers[worker].lease_until <= self.now
        if dead and copy.deepcopy(self).pick(lane, limit, alone=alone):
            raise Refused("FL015")
        picked = self.pick(lane, limit, alone=alone)
        for job in picked:
            if job.may_expire and job.expires_at is not None and job.expires_at <= self.now:
                self.end(job, "cancelled")
        claimed = [job for job in picked if job.unfinished]
        for job in claimed:
            job.place, job.number, job.claimed_once = "running", job.number + 1, True
            job.attempt = Attempt(worker, self.now, self.now, request_id)
        return claimed

    def pick(self, lane: str, limit: int, *, alone: bool) -> list[Job]:
        self.admit_keys(since=self.now - ADMISSION_SECONDS)
        slots = self.slots[lane]
        if slots is not None:
            limit = min(limit, slots - len(self.running(lane=lane)))
        if not self.enabled[lane] or limit <= 0:
            return []
        queue = [
            job
            for job in self.jobs.values()
            if job.place == "ready" and job.lane == lane and (job.deaths is not None) == alone
        ]
        return sorted(queue, key=lambda job: (-job.priority, job.seq))[:limit]

    def admit_keys(self, since: int | None = None) -> None:
        for key, asked in self.key_checks.items():
            recent = [at for at in asked if since is None or at >= since]
            if not recent:
                continue
            self.key_checks[key] = [at for at in asked if at not in recent]
            parked = [job for job in self.jobs.values() if job.place == "key" and job.key == key]
            for job in sorted(parked, key=lambda job: (-job.priority, job.seq)):
                if len(self.holders(key)) >= job.key_limit:
                    break
                job.holds_key = True
                self.move_on(job)

    # Maintenance -------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        for number, worker in self.workers.items():
            if not worker.stopped and worker.lease_until < self.now:
                worker.stopped = True
                self.end_all(self.running(worker=number), "lost")
        overdue = [job for job in self.running() if _due(job, self.now)]
        self.end_all(overdue, "cancelled")
        silent = [
            job
            for job in self.running(lane="narrow")
            if job.attempt is not None and job.attempt.active_at < self.now - STALE_SECONDS
        ]
        self.end_all(silent, "lost")

    def end_all(self, jobs: Iterable[Job], asked: str) -> None:
        for job in jobs:
            self.end_attempt(job, asked)

    def maintain(self) -> None:
        self.sweep()
        for job in list(self.jobs.values()):
            if job.place == "timer" and job.run_at is not None and job.run_at <= self.now:
                self.move_on(job)
        self.end_unclaimed(
            job
            for job in list(self.jobs.values())
            if job.may_expire and job.expires_at is not None and job.expires_at <= self.now
        )
        self.admit_keys()


def _due(job: Job, now: int) -> bool:
    deadline = job.attempt.cancel_deadline if job.attempt is not None else None
    return deadline is not None and deadline <= now
