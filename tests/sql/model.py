"""What the SQL functions promise, in plain Python: one dict of jobs, whole seconds, no tables.

The model says where every job is and what may be done with it. Two things it takes from the database, because any
value is right that keeps a law: fences (`attempt_id`) must be new, and a fresh place in the queue (`seq`) must be
behind all others. `tests/sql/machine.py` checks both.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

GRACE_SECONDS = 30
LEASE_SECONDS = 30
STALE_SECONDS = 50  # lane `narrow`
ADMISSION_SECONDS = 2  # how far back a claim looks for keys to admit
REFUSAL_SECONDS = 60  # how long a refused job waits for another worker that takes its args

SUCCESS = ("succeeded", "succeeded_with_errors")
FINAL = (*SUCCESS, "failed", "cancelled")
#: Where a job is → what fenceline.jobs calls it, and what it waits for.
STATUS = {
    "approval": ("awaiting_approval", None),
    "dependencies": ("waiting", "dependencies"),
    "key": ("waiting", "key"),
    "signal": ("waiting", "signal"),
    "timer": ("scheduled", None),
    "ready": ("queued", None),
}


class Refused(Exception):
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


@dataclass(slots=True)
class Wait:
    """What a handler waits for, until it has come past that."""

    signal: str | None  # None: it sleeps
    until: int | None


@dataclass(slots=True, kw_only=True)
class Job:
    id: int
    lane: str = "default"
    priority: int = 0
    max_attempts: int = 3
    run_at: int | None = None
    expires_at: int | None = None
    dedupe_key: str | None = None
    dedupe_until: str = "claimed"
    resource_lock: str | None = None
    key: str | None = None
    key_limit: int = 1
    after: frozenset[int] = frozenset()
    policy: str = "success"
    needs_approval: bool = False
    runner: Any = None  # a worker's name, or labels that it must have
    retry_of: int | None = None
    place: str = "ready"
    seq: int = 0
    fresh_seq: bool = False  # this step gave it a new seq
    number: int = 0
    token: int = 0
    deaths: int | None = None
    may_expire: bool = True
    holds_key: bool = False
    pending: set[int] = field(default_factory=set)
    attempt: Attempt | None = None
    first_priority: int = 0  # what a retry inherits
    wait: Wait | None = None
    waits_done: int = 0
    signals: list[str] = field(default_factory=list)  # that no wait has taken
    refused_by: set[str] = field(default_factory=set)  # signatures of handlers that did not take its args
    refused_at: int = 0

    @property
    def unfinished(self) -> bool:
        return self.place not in FINAL


@dataclass(slots=True)
class Worker:
    heartbeat_at: int
    lease_until: int
    name: str = "w"
    labels: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    tells_starts: bool = False
    signature: str | None = None  # of its handler; None: it has never said

    def may_claim(self, job: Job) -> bool:
        return self.signature not in job.refused_by and self.is_meant(job)

    def is_meant(self, job: Job) -> bool:
        if isinstance(job.runner, dict):
            return job.runner.items() <= self.labels.items()
        return job.runner in (None, self.name)


@dataclass(slots=True)
class Model:
    now: int = 0
    tail: int = 1 << 63  # behind every seq of the database, until the database has said its own
    draining: bool = False
    jobs: dict[int, Job] = field(default_factory=dict)
    workers: dict[int, Worker] = field(default_factory=dict)
    slots: dict[str, int | None] = field(default_factory=lambda: {"default": None, "narrow": 2})
    enabled: dict[str, bool] = field(default_factory=lambda: {"default": True, "narrow": True})
    delivered: set[str] = field(default_factory=set)  # lanes whose jobs are claimed by messages only
    requests: dict[str, tuple[int, str]] = field(default_factory=dict)  # idempotency key → job, and what was said
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

    def dedupers(self, key: str | None) -> list[Job]:
        return [job for job in self.jobs.values() if job.dedupe_key == key and job.unfinished]

    def find(self, wanted: Callable[[Job], bool]) -> Job | None:
        return next((job for job in self.jobs.values() if wanted(job)), None)

    # Enqueue -----------------------------------------------------------------------------------------------

    def existing(self, draft: Job, idempotency_key: str | None, said: str = "") -> Job | None:
        """The job that an enqueue must return instead of a new one. Refuses what must not be enqueued."""
        if self.draining:
            raise Refused("FL014")
        if idempotency_key in self.requests:
            job_id, before = self.requests[idempotency_key]
            if said != before:
                raise Refused("FL073")
            return self.jobs[job_id]
        if draft.dedupe_key is not None:
            holders = [job for job in self.dedupers(draft.dedupe_key) if _has_dedupe_key(job)]
            if holders:
                return max(holders, key=lambda job: job.id)
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

    def newest_retry(self, job_id: int) -> int:
        retries = [job.id for job in self.jobs.values() if job.retry_of == job_id]
        return max((self.newest_retry(retry) for retry in retries), default=job_id)

    def retry_parents(self, old: Job) -> frozenset[int]:
        """What a retry waits for: the same jobs, or their retries. Refuses what would be cancelled at once."""
        parents = frozenset(map(self.newest_retry, old.after))
        if old.policy == "success" and any(self.jobs[other].place in FINAL[2:] for other in parents):
            raise Refused("FL011")
        return parents

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
        if job.key is not None and (job.holds_key or job.place == "key"):
            self.key_checks[job.key].append(self.now)
        job.place, job.attempt = outcome, None
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
        # Whoever tells of starts before them has not started what it did not tell of.
        refused = asked == "refused"
        signature = self.workers[attempt.worker].signature
        if refused and signature is not None:
            job.refused_by.add(signature)
            job.refused_at = self.now
        unstarted = asked == "lost" and not attempt.started and self.workers[attempt.worker].tells_starts
        refunded = unstarted or refused or asked in ("released", "snoozed", "waiting", "crashed")
        again = refunded or (asked in ("failed", "lost") and job.number < job.max_attempts)
        if refused and (signature is None or not self.takers(job)):
            again = False  # who refuses without having said what it takes, speaks for all
        if not again or attempt.cancel_deadline is not None:
            failed = asked in ("failed", "lost", "failed_for_good", "quarantined", "refused")
            self.end(job, "cancelled" if again else "failed" if failed else asked)
            return
        job.attempt = None
        unrun = refused or ((unstarted or asked == "released") and not attempt.started)
        job.may_expire = job.may_expire and unrun
        job.number -= refunded
        job.deaths = job.deaths if deaths is None else deaths
        job.run_at = self.now + delay if asked in ("failed", "snoozed") else None
        if unstarted or asked == "released":
            self.place(job)  # as if it had not been claimed: in its old place in the queue
        elif asked == "waiting" and job.wait is not None:
            self.hold_waiting(job, job.wait)
        else:
            self.move_on(job)

    # Refusals ----------------------------------------------------------------------------------------------

    def takers(self, job: Job, *, ignoring: bool = False) -> list[Worker]:
        """Live workers that may take a refused job; `ignoring` who has refused it, all that know its kind."""
        live = [worker for worker in self.workers.values() if not worker.stopped and worker.lease_until > self.now]
        return [worker for worker in live if (worker.is_meant if ignoring else worker.may_claim)(job)]

    def verify_refusals(self) -> None:
        for job in list(self.jobs.values()):
            patient = job.refused_at >= self.now - REFUSAL_SECONDS
            if not job.refused_by or job.place != "ready" or patient:
                continue
            if self.takers(job, ignoring=True) and not self.takers(job):
                self.end(job, "failed")

    # Waits -------------------------------------------------------------------------------------------------

    def begin_wait(self, job: Job, signal: str | None, seconds: int | None) -> str | None:
        """How the wait ended; None: it goes on."""
        if job.wait is None:
            job.wait = Wait(signal, None if seconds is None else self.now + seconds)
        job.wait.signal = signal
        if signal in job.signals:
            job.signals.remove(signal)
            ended = "signal"
        elif job.wait.until is not None and job.wait.until <= self.now:
            ended = "slept" if signal is None else "timeout"
        else:
            return None
        job.wait = None
        job.waits_done += 1
        return ended

    def hold_waiting(self, job: Job, wait: Wait) -> None:
        if wait.signal is None:
            job.run_at = wait.until
            self.move_on(job)
            return
        self.tail += 1
        job.seq, job.fresh_seq, job.place = self.tail, True, "signal"
        self.resume(job)

    def resume(self, job: Job) -> None:
        wait = job.wait
        if job.place == "signal" and wait is not None:
            is_over = wait.until is not None and wait.until <= self.now
            if is_over or wait.signal in job.signals:
                self.move_on(job)

    def signal(self, job: Job, name: str) -> None:
        if not job.unfinished:
            raise Refused("FL011")
        job.signals.append(name)
        self.resume(job)

    # Claim -------------------------------------------------------------------------------------------------

    def claim(
        self, worker: int, lane: str, limit: int, *, alone: bool, request_id: UUID, named: frozenset[int] | None = None
    ) -> list[Job]:
        """`named`: the jobs that messages have named, and no others."""
        dead = self.workers[worker].stopped or self.workers[worker].lease_until <= self.now
        if dead and copy.deepcopy(self).pick(worker, lane, limit, alone=alone, named=named):
            raise Refused("FL015")
        picked = self.pick(worker, lane, limit, alone=alone, named=named)
        for job in picked:
            if job.may_expire and job.expires_at is not None and job.expires_at <= self.now:
                self.end(job, "cancelled")
        claimed = [job for job in picked if job.unfinished]
        for job in claimed:
            job.place, job.number = "running", job.number + 1
            job.attempt = Attempt(worker, self.now, self.now, request_id)
        return claimed

    def pick(
        self, worker: int, lane: str, limit: int, *, alone: bool, named: frozenset[int] | None = None
    ) -> list[Job]:
        self.admit_keys(since=self.now - ADMISSION_SECONDS)
        slots = self.slots[lane]
        if slots is not None:
            limit = min(limit, slots - len(self.running(lane=lane)))
        if not self.enabled[lane] or limit <= 0 or (lane in self.delivered and named is None and not alone):
            return []
        queue = [
            job
            for job in self.jobs.values()
            if job.place == "ready"
            and job.lane == lane
            and (named is None or job.id in named)
            and (job.deaths is not None) == alone
            and self.workers[worker].may_claim(job)
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
        self.verify_refusals()
        self.admit_keys()
        for job in list(self.jobs.values()):
            self.resume(job)


def _has_dedupe_key(job: Job) -> bool:
    """Until it begins, and while it waits to be run again from its beginning; or to the end."""
    return (job.attempt is None and job.wait is None) or job.dedupe_until == "finished"


def _due(job: Job, now: int) -> bool:
    deadline = job.attempt.cancel_deadline if job.attempt is not None else None
    return deadline is not None and deadline <= now
