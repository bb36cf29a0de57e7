"""A Hypothesis state machine: the SQL functions on a real PostgreSQL, called from several connections, beside the
model of `tests/sql/model.py`. Every rule calls both; `MachineBase` compares them after every step.
"""

import json
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID, uuid4

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from tests.sql.clock import MOVE_CLOCK, RAN_MEANWHILE, START
from tests.sql.machine_base import LANES, PICK, PLACE, RARELY, WORKERS
from tests.sql.machine_operators import Operators
from tests.sql.machine_waits import Waits
from tests.sql.model import ADMISSION_SECONDS, LEASE_SECONDS, Job

LIMIT = st.integers(1, 2)
POLICY = st.sampled_from(["success", "always"])
OUTCOMES = st.sampled_from(
    ["succeeded", "succeeded_with_errors", "failed", "failed_for_good", "cancelled", "snoozed", "released", "refused"]
)
# Few options per job: with many, hardly a job would ever become claimable.
OPTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("priority"), st.integers(-1, 2)),
        st.tuples(st.just("max_attempts"), st.integers(1, 2)),
        st.tuples(st.just("run_at"), st.sampled_from([0, 5, 20])),
        st.tuples(st.just("expires_at"), st.sampled_from([1, 10, 40])),
        st.tuples(st.just("dedupe_key"), st.sampled_from(["d0", "d1"])),
        st.tuples(st.just("idempotency_key"), st.sampled_from(["i0", "i1"])),
        st.tuples(st.just("resource_lock"), st.sampled_from(["r0", "r1"])),
        st.tuples(st.just("key"), st.sampled_from(["k0", "k0", "k1"])),
        st.tuples(st.just("needs_approval"), st.just(True)),
        st.tuples(st.just("runner"), st.sampled_from(["w0", "w1", {"zone": "a"}, {"zone": "b"}])),
        st.tuples(st.just("after"), st.lists(PICK, min_size=1, max_size=3)),
    ),
    min_size=1,
    max_size=3,
).map(dict)


class Queue(Operators, Waits):
    """What producers, workers and time may do, and operators, in any order."""

    # Producers ---------------------------------------------------------------------------------------------

    @initialize(batch=st.lists(st.tuples(LANES, OPTIONS, LIMIT, POLICY), min_size=4, max_size=8))
    def begin(self, batch: list[tuple[str, dict[str, Any], int, str]]) -> None:
        """Hypothesis leaves out some rules in every run: this way there is something to do without `enqueue`."""
        self.start_empty()
        for lane, options, limit, policy in batch:
            self.enqueue(lane, options, limit, policy)
        type(self).steps -= 1  # this was not a step, but is checked like one

    @rule(lane=LANES, options=OPTIONS, limit=LIMIT, policy=POLICY)
    def enqueue(self, lane: str, options: dict[str, Any], limit: int, policy: str) -> None:
        given = {"lane": lane} | options
        if "key" in given:
            given["key_limit"] = limit
        if "dedupe_key" in given and limit == 1:
            given["dedupe_until"] = "finished"
        if "after" in given:
            given["after"] = sorted({self.job(pick).id for pick in given["after"] if self.model.jobs})
        fields = {name: value for name, value in given.items() if name != "idempotency_key"}
        for name in ("run_at", "expires_at"):
            if name in given:
                fields[name] = self.model.now + given[name]
                moment = datetime.fromisoformat(START) + timedelta(seconds=fields[name])
                given[name] = moment.isoformat()
        draft = Job(id=0, **(fields | {"after": frozenset(fields.get("after", ())), "policy": policy}))
        if given.get("after"):
            given["after"] = {"jobs": given["after"], "policy": policy}
        said = json.dumps(given, sort_keys=True)
        answers = self.both(
            lambda: self.sql("select job_id, created from fenceline.enqueue('work', '{}', %s)", said),
            lambda: self.model.existing(draft, given.get("idempotency_key"), said),
        )
        if answers is None:
            return
        [(job_id, created)], existing = answers
        assert created is (existing is None)
        if existing is not None:
            assert job_id == existing.id
        else:
            draft.id = job_id
            self.model.add(draft)
        if "idempotency_key" in given:
            self.model.requests.setdefault(given["idempotency_key"], (job_id, said))

    @precondition(lambda self: any(job.dedupe_key for job in self.model.jobs.values()))
    @rule(pick=PICK, limit=LIMIT)
    def enqueue_again(self, pick: int, limit: int) -> None:
        """A key that some job has, or had: one that runs rather than one that is over."""
        jobs = [job for job in self.model.jobs.values() if job.dedupe_key]
        candidates = [job for job in jobs if job.attempt] or [job for job in jobs if job.unfinished] or jobs
        self.enqueue("default", {"dedupe_key": candidates[pick % len(candidates)].dedupe_key}, limit, "success")

    @rule(count=st.integers(1, 3))
    def enqueue_many(self, count: int) -> None:
        """The short way: no options, one statement."""
        draft = Job(id=0)
        text: LiteralString = "select job_ids from fenceline.enqueue_many('work', %s::json[])"
        answers = self.both(lambda: self.sql(text, ["{}"] * count), lambda: self.model.existing(draft, None))
        if answers is not None:
            [(job_ids,)], _ = answers
            assert sorted(job_ids) == job_ids
            for job_id in job_ids:
                self.model.add(Job(id=job_id))

    # Workers -----------------------------------------------------------------------------------------------

    @rule(place=PLACE, lane=LANES, limit=st.integers(1, 3), alone=RARELY)
    def claim(self, place: int, lane: str, limit: int, alone: bool) -> None:  # noqa: FBT001 - drawn by name
        number, request_id = self.workers[place], uuid4()
        answers = self.both(
            lambda: self.ask_for_jobs(place, lane, limit, request_id, alone=alone),
            lambda: self.model.claim(number, lane, limit, alone=alone, request_id=request_id),
        )
        if answers is None:
            self.register(place)  # its lease is over
            return
        rows, claimed = answers
        assert [row[0] for row in rows] == [job.id for job in claimed], "claimed in order of priority, then seq"
        for (_, attempt_id, token, budget), job in zip(rows, claimed, strict=True):
            assert budget == job.number
            assert token > job.token, "the token grows with every claim"
            job.token, self.attempt(job).attempt_id = token, attempt_id
        if claimed:  # the reply was lost: the same request again
            assert self.ask_for_jobs(place, lane, limit, request_id, alone=alone) == rows

    @rule(place=PLACE, lane=LANES)
    def claim_many(self, place: int, lane: str) -> None:
        """More of what matters most."""
        self.claim(place, lane, 4, alone=False)

    def ask_for_jobs(self, place: int, lane: str, limit: int, request_id: UUID, *, alone: bool) -> list[Any]:
        return self.sql(
            "select job_id, attempt_id, token, number from fenceline.claim_jobs(%s, %s, %s, null, %s, null, %s)",
            *(self.workers[place], lane, limit, request_id, alone),
            worker=place,
        )

    @precondition(lambda self: self.model.jobs)
    @rule(place=PLACE, lane=LANES, picks=st.lists(PICK, min_size=1, max_size=4))
    def claim_named(self, place: int, lane: str, picks: list[int]) -> None:
        """Messages arrive, for any jobs, whatever has become of them."""
        number, request_id = self.workers[place], uuid4()
        named = sorted({self.job(pick).id for pick in picks})
        text: LiteralString = (
            "select job_id, attempt_id, token from fenceline.claim_named_jobs(%s, %s, %s::bigint[], null, %s)"
        )
        answers = self.both(
            lambda: self.sql(text, number, lane, named, request_id, worker=place),
            lambda: self.model.claim(
                number, lane, len(named), alone=False, request_id=request_id, named=frozenset(named)
            ),
        )
        if answers is None:
            self.register(place)  # its lease is over
            return
        rows, claimed = answers
        assert [row[0] for row in rows] == [job.id for job in claimed], "what the messages name, in the lane's order"
        for (_, attempt_id, token), job in zip(rows, claimed, strict=True):
            job.token, self.attempt(job).attempt_id = token, attempt_id

    @rule(lane=LANES)
    def take_messages(self, lane: str) -> None:
        """Every message is for a job that can be claimed now; none is sent twice while it is under way."""
        delivery = "arq" if lane in self.model.delivered else "postgres"
        self.model.admit_keys(since=self.model.now - ADMISSION_SECONDS)
        under_way = {job_id for (job_id,) in self.sql("select job_id from fenceline.message")}
        sent = [row[0] for row in self.sql("select * from fenceline.take_messages(%s, %s)", delivery, [lane])]
        jobs = [self.model.jobs[job_id] for job_id in sent]
        assert not sent or (delivery == "arq" and self.model.enabled[lane])
        assert all(job.place == "ready" and job.lane == lane and job.deaths is None for job in jobs)
        assert jobs == sorted(jobs, key=lambda job: (-job.priority, job.seq))
        assert not under_way & set(sent)

    @precondition(lambda self: self.model.running())
    @rule(pick=PICK)
    def start(self, pick: int) -> None:
        job = self.live(pick)
        assert self.sql("select * from fenceline.start_attempts(%s, %s)", [job.id], [self.fence(job)]) == []
        attempt = self.attempt(job)
        attempt.active_at = attempt.active_at if attempt.started else self.model.now  # only the first one counts
        attempt.started = True

    @precondition(lambda self: self.model.running())
    @rule(picks=st.lists(PICK, min_size=1, max_size=3), outcome=OUTCOMES, delay=st.sampled_from([0, 7]))
    def finish(self, picks: list[int], outcome: str, delay: int) -> None:
        jobs = list({job.id: job for job in map(self.live, picks)}.values())
        stale = [pair for pair in self.model.ended if pair[0] in {job.id for job in jobs}]
        live = [(job.id, self.fence(job)) for job in jobs]
        verdicts = self.send_finish(live + stale, outcome, delay)
        expected = {pair: "already" if self.model.ended[pair] == outcome else "stale" for pair in stale}
        assert verdicts == expected, "only live attempts are accepted"
        for job in jobs:
            self.model.end_attempt(job, outcome, delay=delay)

    @precondition(lambda self: self.model.running())
    @rule(pick=PICK, outcome=OUTCOMES)
    def finish_one(self, pick: int, outcome: str) -> None:
        """Who refuses the args asks for more, and must not get the job again."""
        job = self.live(pick)
        worker = self.attempt(job).worker
        self.finish([pick], outcome, 0)
        if outcome == "refused" and worker in self.workers:  # it has not had to register anew
            self.claim(self.workers.index(worker), job.lane, 3, alone=False)

    @precondition(lambda self: self.model.ended)
    @rule(pick=PICK, outcome=OUTCOMES, same=st.booleans())
    def finish_again(self, pick: int, outcome: str, same: bool) -> None:  # noqa: FBT001 - drawn by name
        pair, asked = list(self.model.ended.items())[pick % len(self.model.ended)]
        outcome = asked if same and asked not in ("lost", "crashed", "quarantined") else outcome
        assert self.send_finish([pair], outcome, 0) == {pair: "already" if outcome == asked else "stale"}
        assert self.sql("select * from fenceline.start_attempts(%s, %s)", [pair[0]], [pair[1]]) == [pair]
        [(accepted,)] = self.sql("select fenceline.set_progress(%s, %s, 'late')", *pair)
        assert accepted is False
        lines = '[{"message": "late"}]'
        assert self.sql("select fenceline.write_log(%s, %s, %s)", *pair, lines) == [(False,)]

    def send_finish(self, pairs: list[Any], outcome: str, delay: int) -> dict[Any, str]:
        jobs, fences = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        rows = self.sql(
            "select job_id, attempt_id, verdict from fenceline.finish_attempts(%s, %s, %s, p_delays => %s::float8[])",
            *(jobs, fences, [outcome] * len(pairs), [delay] * len(pairs)),
        )
        return {(job_id, fence): verdict for job_id, fence, verdict in rows}

    @rule(place=PLACE, known=st.sampled_from([None, "all", "none", "first"]))
    def heartbeat(self, place: int, known: str | None) -> None:
        number, worker = self.workers[place], self.model.workers[self.workers[place]]
        running = self.model.running(worker=number)
        held = {"all": running, "first": running[:1]}.get(known or "", [])
        fences = [self.fence(job) for job in held] + ([uuid4()] if known else [])
        rows = self.sql(
            "select attempt_id, word from fenceline.heartbeat(array[%s]::integer[], %s)",
            *(number, fences if known else None),
            worker=place,
        )
        words: set[Any] = {
            (self.fence(job), "cancel") for job in running if self.attempt(job).cancel_deadline is not None
        }
        words |= {(fences[-1], "stale")} if known else set()
        words |= {(None, "lost")} if worker.stopped else set()
        assert set(rows) == words
        if known:
            forgotten = [
                job for job in running if job not in held and self.attempt(job).claimed_at < worker.heartbeat_at
            ]
            self.model.end_all(forgotten, "released")
        if not worker.stopped:
            worker.heartbeat_at, worker.lease_until = self.model.now, self.model.now + LEASE_SECONDS

    @rule(place=PLACE)
    def stop_worker(self, place: int) -> None:
        number = self.workers[place]
        running = self.model.running(worker=number)
        assert self.sql("select fenceline.stop_worker(%s)", number, worker=place) == [(len(running),)]
        self.model.workers[number].stopped = True
        self.model.end_all(running, "released")
        self.register(place)

    @rule(place=PLACE, suspects=st.sampled_from([None, 0, 1, 2]))
    def report_crash(self, place: int, suspects: int | None) -> None:
        number = self.workers[place]
        running = self.model.running(worker=number)
        guilty = running if suspects is None else running[:suspects]
        fences = None if suspects is None else [self.fence(job) for job in guilty]
        ended = self.sql("select fenceline.report_crash(%s, %s)", number, fences, worker=place)
        assert ended == [(len(running),)]
        self.model.workers[number].stopped = True
        for job in running:
            deaths = (job.deaths or 0) + (len(guilty) == 1)
            if job not in guilty:
                self.model.end_attempt(job, "released")
            else:
                self.model.end_attempt(job, "quarantined" if deaths >= 3 else "crashed", deaths=deaths)
        self.register(place)

    # Time --------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 1, 3, 8, 20, 40]))
    def pass_time(self, seconds: int) -> None:
        self.connections[-1].execute(MOVE_CLOCK, (seconds,))
        self.connections[-1].execute(RAN_MEANWHILE)
        self.model.now += seconds

    @rule(place=PLACE)
    def sweep(self, place: int) -> None:
        self.sql("select fenceline.sweep()", worker=place)
        self.model.sweep()

    @rule(place=PLACE)
    def maintain(self, place: int) -> None:
        self.sql("select fenceline.maintain(0)", worker=place)
        self.model.maintain()
        for other in range(WORKERS):
            if self.model.workers[self.workers[other]].stopped:
                self.register(other)

    @rule(place=PLACE, seconds=st.sampled_from([5, 20]))
    def maintain_later(self, place: int, seconds: int) -> None:
        """Timers need both, so both together more often than chance would have it."""
        self.pass_time(seconds)
        self.maintain(place)


def run_machine(dsn: str, *, examples: int, shrink: bool = True) -> None:
    """Run the machine on a database of its own; the same steps every time. Raises what the first failure raised."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    repeatable = settings(
        max_examples=examples,
        stateful_step_count=50,
        derandomize=True,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    Queue.connect(dsn)
    try:
        run_state_machine_as_test(Queue, settings=repeatable)
    finally:
        Queue.close()
