"""The rules of the state machine that operators follow: cancel, approve, retry, reprioritise, lanes, drains."""

import json
from typing import LiteralString

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule
from tests.sql.machine_base import LANES, PICK, RARELY, MachineBase
from tests.sql.model import GRACE_SECONDS, Job, Refused


class Operators(MachineBase):
    @precondition(lambda self: self.model.jobs)
    @rule(pick=PICK, force=st.booleans(), running=st.booleans())
    def cancel(self, pick: int, force: bool, running: bool) -> None:  # noqa: FBT001 - drawn by name
        job = self.live(pick) if running and self.model.running() else self.job(pick)
        text: LiteralString = "select fenceline.cancel_job(%s, p_force => %s)"
        if self.both(lambda: self.sql(text, job.id, force), lambda: require(job.unfinished)) is None:
            return
        if job.attempt is None:
            self.model.end_unclaimed([job])
        elif force:
            self.model.end_attempt(job, "cancelled")
        elif job.attempt.cancel_deadline is None:
            job.attempt.cancel_deadline = self.model.now + GRACE_SECONDS

    @precondition(lambda self: self.model.jobs)
    @rule(pick=PICK, awaiting=st.booleans(), approve=st.booleans())
    def decide(self, pick: int, awaiting: bool, approve: bool) -> None:  # noqa: FBT001 - drawn by name
        candidates = [job for job in self.model.jobs.values() if not awaiting or job.place == "approval"]
        if not candidates:
            return
        job = candidates[pick % len(candidates)]
        text: LiteralString = "select fenceline.approve_job(%s)" if approve else "select fenceline.reject_job(%s)"
        if self.both(lambda: self.sql(text, job.id), lambda: require(job.place == "approval")) is None:
            return
        if not approve:
            self.model.end_unclaimed([job])
        elif job.pending:
            job.place = "dependencies"
        else:
            self.model.move_on(job)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        old = self.job(pick)
        fields = ("lane", "max_attempts", "resource_lock", "key", "key_limit", "needs_approval", "policy", "runner")
        draft = Job(id=0, priority=old.first_priority, retry_of=old.id, **{name: getattr(old, name) for name in fields})
        draft.waits_done, draft.signals = old.waits_done, list(old.signals)

        def model() -> None:
            require(not old.unfinished)
            draft.after = self.model.retry_parents(old)
            self.model.existing(draft, None)

        answers = self.both(lambda: self.sql("select job_id from fenceline.retry_job(%s)", old.id), model)
        if answers is not None:
            draft.id = answers[0][0][0]
            self.model.add(draft)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=PICK, priority=st.integers(-1, 3))
    def reprioritise(self, pick: int, priority: int) -> None:
        job = self.job(pick)
        text: LiteralString = "select fenceline.reprioritise_job(%s, %s)"
        answers = self.both(
            lambda: self.sql(text, job.id, priority), lambda: require(job.unfinished and job.attempt is None)
        )
        if answers is not None:
            assert answers[0] == [(job.priority,)]
            job.priority = priority
            if job.place == "key" and job.key is not None:
                self.model.key_checks[job.key].append(self.model.now)

    @rule(lane=LANES, slots=st.sampled_from([None, None, 3, 2, 1, 0]), drained=RARELY, delivered=RARELY)
    def set_lane(self, lane: str, slots: int | None, drained: bool, delivered: bool) -> None:  # noqa: FBT001 - drawn
        changes = json.dumps({"slots": slots, "enabled": not drained, "delivery": "arq" if delivered else None})
        self.sql("select fenceline.set_lane(%s, %s)", lane, changes)
        self.model.delivered = self.model.delivered - {lane} | ({lane} if delivered else set())
        self.model.slots[lane], self.model.enabled[lane] = slots, not drained

    @rule(draining=RARELY)
    def drain_system(self, draining: bool) -> None:  # noqa: FBT001 - drawn by name
        self.sql("select fenceline.drain_system(%s)", draining)
        self.model.draining = draining


def require(allowed: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not allowed:
        raise Refused("FL011")
