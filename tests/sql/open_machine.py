"""Storms of transactions that stay open around every verb, at any isolation level, while others work and the clock is
set: random, and the same every time.

There is no model, only a ledger: the jobs that somebody was told of. After every step each of them must be in exactly
one place and every limit must hold; when all transactions are over, each of them must come to its end.

The steps are drawn before the first is taken, and mean something whatever went before them. So the steps that a failure
does not need can be left out, one by one, until only those are left that it does.
"""

import json
from collections import Counter
from random import Random
from typing import Any, ClassVar, LiteralString

import psycopg
from tests.sql.clock import MOVE_CLOCK, RAN_MEANWHILE, RESET_CLOCK, clock_sql
from tests.sql.observed import RESET, observe
from tests.sql.open_steps import AROUND, MADE_FOR, QUICK, USERS, VERBS, Step, draw_step

LEASE_SECONDS = 30
STEPS = 30  # of one storm

START_EMPTY = f"""
{RESET}
{RESET_CLOCK};
update fenceline.kind set lane = null;
delete from fenceline.lane where name like 'lane%';
select fenceline.set_lane('narrow', '{{"slots": 2, "stale_timeout_seconds": 50, "enabled": true, "kinds": []}}');
select fenceline.set_lane('side', '{{"slots": null, "enabled": true, "fair": false, "ageing_seconds": null}}');
"""
#: What such a transaction may always be told: the refusals, a conflict, a lock that somebody holds.
MAY_FAIL = ("FL", "40001", "55P03")
#: As a session does that maintains the queue all the time (function clock_step).
LOOKED_OFTEN = """
select set_config('fenceline.seen_at', extract(epoch from fenceline.clock())::text, false),
       set_config('fenceline.usual_gap_seconds', '1', false)
"""
OVER_LIMIT = """
select h.key from fenceline.key_holder h join fenceline.job j on j.id = h.job_id
group by h.tenant, h.key having count(*) > max(j.key_limit)
"""


class OpenTransactions:
    users: ClassVar[list[psycopg.Connection]] = []
    worker: ClassVar[psycopg.Connection]
    steps: ClassVar[int] = 0
    seen: ClassVar[Counter[str]] = Counter()

    @classmethod
    def connect(cls, dsn: str) -> None:
        cls.steps, cls.seen = 0, Counter()
        cls.worker, *cls.users = (psycopg.connect(dsn, autocommit=True) for _ in (*USERS, None))
        for connection in (cls.worker, *cls.users):
            connection.execute("set synchronous_commit = off")
            connection.execute("set statement_timeout = '10s'")  # whoever looks for ever is found out
            connection.execute("set lock_timeout = '30ms'")
        cls.worker.execute(clock_sql().encode())

    @classmethod
    def close(cls) -> None:
        for connection in (cls.worker, *cls.users):
            connection.close()

    def __init__(self) -> None:
        """An empty queue, two jobs that have ended, and some that have not."""
        self.open: list[str | None] = [None for _ in USERS]
        self.told: list[set[int]] = [set() for _ in USERS]  # in transactions that are open
        self.taken: list[set[int]] = [set() for _ in USERS]
        self.claimed: list[list[tuple[int, Any]]] = [[] for _ in USERS]
        self.ledger: set[int] = set()
        self.attempts: list[tuple[int, Any]] = []
        for connection in self.users:
            connection.rollback()  # left open by a run that failed
        self.worker.execute(START_EMPTY.encode())
        self.worker.execute(LOOKED_OFTEN)
        self.register()
        self.enqueue_many(0, 2)
        self.claim("default", 2)
        for outcome in ("succeeded", "cancelled"):
            self.finish(0, outcome)
        self.enqueue_many(0, 3)
        self.claim("default", 1)

    def register(self) -> None:
        row = self.worker.execute("select fenceline.register_worker('w', %s)", (LEASE_SECONDS,)).fetchone()
        assert row is not None
        self.number = row[0]

    def calm_down(self) -> None:
        """Every transaction ends, every gate opens: then every job must come to its end."""
        for user in USERS:
            if self.open[user]:
                self.end(user, commit=True)
        self.agree()
        self.work("select fenceline.drain_system(false)")
        for (name,) in self.work("select name from fenceline.lane"):
            self.work("select fenceline.set_lane(%s, %s)", name, '{"slots": null, "enabled": true}')
        self.register()
        for turn in range(60):
            self.work_off()
            self.pass_time(5 if turn < 40 else 3600)  # run_at is a moment, and the clock may have been set back far
            [(left,)] = self.work("select count(*) from fenceline.jobs where finished_at is null")
            if left == 0:
                break
        self.agree()
        lost = "select status, waiting_for, lane, job_id from fenceline.jobs where finished_at is null"
        assert left == 0, f"never came to an end: {self.work(lost)}"

    def work_off(self) -> None:
        self.work("select fenceline.approve_job(job_id) from fenceline.held where waiting_for = 'approval'")
        self.maintain(beats=True)
        self.restore_lanes()
        for (name,) in self.work("select name from fenceline.lane"):
            self.claim(name, 9)
        for job, fence in self.attempts:
            self.work("select fenceline.finish_attempt(%s, %s)", job, fence)
        self.attempts = []

    # Users: producers, operators, handlers with a transaction of their own ----------------------------------------

    def begin(self, user: int, isolation: str, looks: bool) -> None:  # noqa: FBT001 - drawn by name
        if self.open[user] is None:
            self.users[user].execute(f"begin isolation level {isolation}".encode())
            self.open[user] = isolation
            if looks:
                self.users[user].execute("select from fenceline.setting")  # takes the snapshot, where there is but one

    def end(self, user: int, commit: bool) -> None:  # noqa: FBT001 - drawn by name
        if self.open[user] is None:
            return
        try:
            self.users[user].execute("commit" if commit else "rollback")
        except psycopg.errors.SerializationFailure:
            commit = False
        self.open[user] = None
        if commit:
            self.ledger |= self.told[user]
            self.ledger -= self.taken[user]
            self.attempts += self.claimed[user]
        self.told[user], self.taken[user], self.claimed[user] = set(), set(), []

    def act(self, user: int, text: LiteralString, *parameters: object) -> list[tuple[Any, ...]] | None:
        """One statement of a user's, in its transaction if it has one; None when it was refused."""
        connection, name = self.users[user], name_of(text)
        where = self.open[user] or "alone"
        if self.open[user]:
            connection.execute("savepoint verb")
        try:
            rows = connection.execute(text, parameters).fetchall()
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith(MAY_FAIL):
                raise
            self.seen[f"{name} {where}: {error.sqlstate}"] += 1
            if error.sqlstate == "40001" and self.open[user]:
                self.end(user, commit=False)
            elif self.open[user]:
                connection.execute("rollback to verb")
            return None
        self.seen[f"{name} {where}"] += 1
        return rows

    def do(self, user: int, verb: tuple[Any, ...]) -> None:
        method, *arguments = verb
        getattr(self, method)(user, *arguments)

    def do_around(self, isolation: str, verb: Step, meanwhile: Step, afterwards: Step, commit: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
        """Others act between a verb and its commit, and right after it."""
        self.begin(AROUND, isolation, looks=False)
        self.do(AROUND, verb)
        self.do(QUICK, meanwhile)
        self.agree()
        self.end(AROUND, commit=commit)
        self.agree()
        self.do(QUICK, afterwards)

    def do_around_lane(self, lane: str, isolation: str, meanwhile: Step, afterwards: Step, commit: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
        """Operators change a lane that a job is just coming into."""
        self.set_lane(QUICK, lane, {})
        self.do_around(isolation, ("enqueue", "work", {"lane": lane}), meanwhile, afterwards, commit)

    def tell(self, user: int, jobs: set[int]) -> None:
        if self.open[user]:
            self.told[user] |= jobs
        else:
            self.ledger |= jobs

    def begin_with_jobs(self, batch: list[dict[str, Any]]) -> None:
        """Hypothesis leaves out some rules in every run: this way there is something to do without `enqueue`."""
        for number, options in enumerate([{"priority": 9}, {"priority": 9}, *batch]):
            self.enqueue(0, "work", options)
            if number == 1:
                self.claim("default", 2)
                for outcome in ("succeeded", "cancelled"):
                    self.finish(0, outcome)
        self.claim("default", 2)

    def enqueue(self, user: int, kind: str, options: dict[str, Any]) -> None:
        given = {name: value for name, value in options.items() if name not in ("run_in", "expires_in", "after")}
        if "key" not in given:
            given.pop("key_limit", None)
        if "after" in options and (known := sorted(self.ledger | self.told[user])):
            given["after"] = [known[options["after"] % len(known)]]
        for name in ("run", "expires"):
            if f"{name}_in" in options:
                [(moment,)] = self.work(
                    "select to_json(fenceline.clock() + make_interval(secs => %s))", options[f"{name}_in"]
                )
                given[f"{name}_at"] = moment
        rows = self.act(user, "select job_id, created from fenceline.enqueue(%s, '{}', %s)", kind, json.dumps(given))
        if rows:
            self.tell(user, {rows[0][0]} if rows[0][1] else set())

    def enqueue_many(self, user: int, count: int) -> None:
        rows = self.act(user, "select job_ids from fenceline.enqueue_many('work', %s::json[])", ["{}"] * count)
        if rows:
            self.tell(user, set(rows[0][0]))

    def change(self, user: int, verb: str, pick: int, fits: bool) -> None:  # noqa: FBT001 - drawn by name
        """A verb of one job, mostly of one that it is made for."""
        text, statuses = VERBS[verb]
        known = sorted(self.ledger | self.told[user])
        if fits:
            if verb in MADE_FOR:
                self.enqueue(QUICK, "work", MADE_FOR[verb])
            fitting = self.work("select job_id from fenceline.jobs where status = any(%s) order by 1", statuses)
            known = [job for (job,) in fitting] or known
        job = known[pick % len(known)]
        rows = self.act(user, text, job)
        if rows and verb == "retry":
            self.tell(user, {rows[0][0]})
        elif rows and verb == "delete" and self.open[user]:
            self.taken[user].add(job)
        elif rows and verb == "delete":
            self.ledger.discard(job)

    def set_lane(self, user: int, lane: str, changes: dict[str, Any]) -> None:
        self.act(user, "select fenceline.set_lane(%s, %s)", lane, json.dumps(changes))

    def delete_lane(self, user: int, lane: str) -> None:
        self.act(user, "select fenceline.delete_lane(%s)", lane)

    def drain_system(self, user: int, draining: bool) -> None:  # noqa: FBT001 - drawn by name
        self.act(user, "select fenceline.drain_system(%s)", draining)

    def finish_in_transaction(self, user: int, pick: int, outcome: str) -> None:
        """As a handler does with `ctx.transaction()`."""
        if self.attempts:
            job, fence = self.attempts[pick % len(self.attempts)]
            self.act(user, "select fenceline.finish_attempt(%s, %s, %s)", job, fence, outcome)

    def claim_in_transaction(self, user: int, lane: str, limit: int) -> None:
        """As a worker does whose session freezes in the middle of a claim."""
        rows = self.act(
            user,
            "select job_id, attempt_id from fenceline.claim_jobs(fenceline.register_worker('frozen', %s), %s, %s)",
            LEASE_SECONDS,
            lane,
            limit,
        )
        self.claimed[user] += rows or []
        if not self.open[user]:
            self.attempts += self.claimed[user]
            self.claimed[user] = []

    # The worker, which never keeps a transaction open -------------------------------------------------------------

    def work(self, text: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        """One statement of the worker's; no rows where somebody holds what it needs."""
        try:
            return self.worker.execute(text, parameters).fetchall()
        except psycopg.errors.LockNotAvailable:
            self.seen[f"worker: {name_of(text)}: waits"] += 1
            return []

    def claim(self, lane: str, limit: int) -> None:
        text: LiteralString = "select job_id, attempt_id from fenceline.claim_jobs(%s, %s, %s)"
        try:
            claimed = self.work(text, self.number, lane, limit)
        except psycopg.Error as error:
            if error.sqlstate not in ("FL001", "FL015"):
                raise
            if error.sqlstate == "FL015":
                self.register()
            return
        self.attempts += claimed
        if claimed:
            [(running, slots)] = self.work(
                "select count(*), min(n.slots) from fenceline.running r join fenceline.lane n on n.name = r.lane "
                "where r.lane = %s",
                lane,
            )
            assert slots is None or running <= slots, f"{running} run in lane {lane}, which has {slots} slots"

    def finish(self, pick: int, outcome: str) -> None:
        if not self.attempts:
            return
        job, fence = self.attempts.pop(pick % len(self.attempts))
        if not self.work("select fenceline.finish_attempt(%s, %s, %s)", job, fence, outcome):
            self.attempts.append((job, fence))

    def maintain(self, beats: bool) -> None:  # noqa: FBT001 - drawn by name
        if beats:
            self.work("select from fenceline.heartbeat(array[%s]::integer[])", self.number)
        self.work("select fenceline.maintain(0)")

    def restore_lanes(self) -> None:
        self.work("select fenceline.restore_lanes()")

    # Time ---------------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: int) -> None:
        self.worker.execute(MOVE_CLOCK, (seconds,))
        self.work(RAN_MEANWHILE + " returning 1")

    def set_clock(self, seconds: int) -> None:
        """No time passes: whoever was alive is not lost."""
        self.maintain(beats=True)
        self.worker.execute(LOOKED_OFTEN)
        [(before,)] = self.work("select count(*) from fenceline.running where cancel_deadline is null")
        self.worker.execute(MOVE_CLOCK, (seconds,))
        self.work("select fenceline.maintain(0)")
        [(after,)] = self.work("select count(*) from fenceline.running where cancel_deadline is null")
        assert after == before, "a clock that is set ends no attempt"

    # What always holds --------------------------------------------------------------------------------------------

    def agree(self) -> None:
        type(self).steps += 1
        observed = observe(self.worker)  # every job is in exactly one place
        assert set(observed.rows) == self.ledger, "every job that was acknowledged is there, and no other"
        assert self.work(OVER_LIMIT) == [], "a key has more holders than any of them allows"


def name_of(text: str) -> str:
    """The function that a statement calls."""
    return text.partition("fenceline.")[2].partition("(")[0]


def weather(steps: list[Step]) -> None:
    """One storm: its steps, each followed by a look at everything, and the calm after it."""
    storm = OpenTransactions()
    for name, *arguments in steps:
        getattr(storm, name)(*arguments)
        storm.agree()
    storm.calm_down()


def shrink(steps: list[Step], failure: Exception) -> list[Step]:
    """Without the steps that this kind of failure does not need."""
    for position in reversed(range(len(steps))):
        fewer = steps[:position] + steps[position + 1 :]
        try:
            weather(fewer)
        except type(failure):
            steps = fewer
    return steps


def run_open_machine(dsn: str, *, storms: int) -> None:
    """Run storms on a database of their own. Raises what the first failure raised, with the steps that lead to it."""
    OpenTransactions.connect(dsn)
    try:
        for seed in range(storms):
            chance = Random(seed)
            steps = [draw_step(chance) for _ in range(STEPS)]
            try:
                weather(steps)
            except (AssertionError, psycopg.Error) as failure:
                failure.add_note(f"storm {seed}: " + "".join(f"\n  {step}" for step in shrink(steps, failure)))
                raise
    finally:
        OpenTransactions.close()
