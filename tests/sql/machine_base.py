"""The connections of the state machine, and the comparison of database and model after every step."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, LiteralString
from uuid import UUID

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant
from tests.sql.clock import RESET_CLOCK, clock_sql
from tests.sql.model import FINAL, LEASE_SECONDS, STALE_SECONDS, Attempt, Job, Model, Refused, Worker
from tests.sql.observed import RESET, Observed, observe

WORKERS = 3

#: What the handlers of the workers take; the first is of a version that does not say.
SIGNATURES = (None, "work old", "work new")

PICK = st.integers(0, 10**6)  # one of however many there are
PLACE = st.integers(0, WORKERS - 1)
RARELY = st.sampled_from([False, False, False, True])
LANES = st.sampled_from(["default", "default", "narrow"])

# Partitions and retention have tests of their own, so upkeep is never due.
START_EMPTY = f"""
{RESET}
{RESET_CLOCK};
insert into fenceline.maintenance values ('upkeep', fenceline.clock() + interval '1 day');
select fenceline.set_lane('narrow', '{{"slots": 2, "stale_timeout_seconds": {STALE_SECONDS}, "enabled": true}}');
"""
#: What a session remembers of the clock (clock_step) is of another run's clock.
FORGET_VISITS = (
    "select set_config('fenceline.seen_at', '', false), set_config('fenceline.usual_gap_seconds', '', false)"
)


class MachineBase(RuleBasedStateMachine):
    connections: ClassVar[list[psycopg.Connection]] = []  # one per worker, and one for producers and operators
    steps: ClassVar[int] = 0
    seen: ClassVar[Counter[str]] = Counter()  # moves of jobs and ends of attempts, to know what the steps were worth

    @classmethod
    def connect(cls, dsn: str) -> None:
        cls.steps = 0
        cls.seen = Counter()
        cls.connections = [psycopg.connect(dsn, autocommit=True) for _ in range(WORKERS + 1)]
        for connection in cls.connections:
            connection.execute("set synchronous_commit = off")  # a crash of the server is not tested here
        cls.connections[-1].execute(clock_sql().encode())

    @classmethod
    def close(cls) -> None:
        for connection in cls.connections:
            connection.close()

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.workers: list[int] = [0] * WORKERS
        self.highest_seq = 0
        self.places: dict[int, str] = {}
        self.terminal: dict[int, str] = {}

    def start_empty(self) -> None:
        for connection in self.connections:
            connection.execute(FORGET_VISITS)
        self.connections[-1].execute(START_EMPTY.encode())
        for place in range(WORKERS):
            self.register(place)
        keys = self.sql("select k from unnest(array['k0', 'k1']) k order by fenceline.key_lock('default', k)")
        self.model.key_checks = {key: [] for (key,) in keys}

    def sql(self, text: LiteralString, *parameters: object, worker: int = WORKERS) -> list[tuple[Any, ...]]:
        """Run one statement as a worker, or as a producer or operator."""
        return self.connections[worker].execute(text, parameters).fetchall()

    def both(self, database: Callable[[], Any], model: Callable[[], Any]) -> Any:
        """Call both. Either both refuse for the same reason (then None), or both answer (then the two answers)."""
        try:
            expected = model()
        except Refused as refused:
            sqlstate = refused.sqlstate
        else:
            return database(), expected
        with pytest.raises(psycopg.Error) as raised:
            database()
        assert raised.value.sqlstate == sqlstate
        return None

    def register(self, place: int) -> None:
        name, labels = f"w{place}", {"zone": "ab"[place % 2]}
        [(number,)] = self.sql(
            "select fenceline.register_worker(%s, %s, p_labels => %s)",
            *(name, LEASE_SECONDS, json.dumps(labels)),
            worker=place,
        )
        self.workers[place] = number
        tells_starts = place != 0  # the first is of a version that does not
        if tells_starts:
            self.sql("select fenceline.promise_starts(%s)", number, worker=place)
        signature = SIGNATURES[place]
        if signature is not None:
            handler = json.dumps({signature: {"takes": {}, "extra": False}})
            self.sql("select fenceline.declare_signatures(%s, %s)", number, handler, worker=place)
        self.model.workers[number] = Worker(
            self.model.now,
            self.model.now + LEASE_SECONDS,
            name,
            labels,
            tells_starts=tells_starts,
            signature=signature,
        )

    # Picking -----------------------------------------------------------------------------------------------

    def job(self, pick: int) -> Job:
        jobs = list(self.model.jobs.values())
        return jobs[pick % len(jobs)]

    def live(self, pick: int) -> Job:
        running = self.model.running()
        return running[pick % len(running)]

    def attempt(self, job: Job) -> Attempt:
        assert job.attempt is not None
        return job.attempt

    def fence(self, job: Job) -> UUID:
        fence = self.attempt(job).attempt_id
        assert fence is not None
        return fence

    # Comparing ---------------------------------------------------------------------------------------------

    @invariant()
    def agree(self) -> None:
        type(self).steps += 1
        observed = observe(self.connections[-1])
        jobs = self.model.jobs
        assert observed.statuses == {job.id: self.model.status(job) for job in jobs.values()}
        for job in jobs.values():
            self.agree_on(job, observed)
        self.highest_seq = max([self.highest_seq, *(job.seq for job in jobs.values() if job.unfinished)])

        unfinished = [job for job in jobs.values() if job.unfinished]
        assert observed.locks == {(job.resource_lock, job.id) for job in unfinished if job.resource_lock}
        assert observed.dedupes == {(job.dedupe_key, job.id) for job in unfinished if job.dedupe_key}
        assert observed.key_holders == {(job.key, job.id) for job in unfinished if job.holds_key}
        assert observed.dependencies == {(other, job.id) for job in jobs.values() for other in job.pending}
        assert all(jobs[after].unfinished for after, _ in observed.dependencies)
        assert {(job, fence) for job, fence, _ in observed.ended_attempts} == set(self.model.ended)
        assert observed.live_workers == {n for n, worker in self.model.workers.items() if not worker.stopped}
        for key in {job.key for job in unfinished if job.key}:
            running = [job for job in self.model.holders(key) if job.attempt]
            assert len(running) <= max((job.key_limit for job in running), default=0)

    def agree_on(self, job: Job, observed: Observed) -> None:
        row = observed.rows[job.id]
        before = self.places.get(job.id, "new")
        if before != row.place:
            self.seen[f"{before} → {row.place}"] += 1
            self.places[job.id] = row.place
        assert row.place == job.place
        if job.place in FINAL:
            assert self.terminal.setdefault(job.id, row.place) == row.place, "a terminal status never changes"
            return
        assert job.id not in self.terminal
        assert (row.number, row.priority, row.deaths) == (job.number, job.priority, job.deaths)
        assert row.token == job.token
        assert row.attempt_id == (job.attempt.attempt_id if job.attempt else None)
        assert row.worker == (job.attempt.worker if job.attempt else None)
        assert row.seq is not None
        if job.fresh_seq:
            assert row.seq > self.highest_seq, "what becomes claimable joins at the tail"
            job.seq, job.fresh_seq = row.seq, False
        assert row.seq == job.seq, "nothing else moves a job in the queue"
