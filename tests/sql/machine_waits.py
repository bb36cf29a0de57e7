"""The rules of the state machine that waiting handlers follow, and those who signal them."""

from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule
from tests.sql.machine_base import PICK, RARELY, MachineBase
from tests.sql.model import Job

SIGNALS = st.sampled_from(["s0", "s0", "s1"])


class Waits(MachineBase):
    @precondition(lambda self: self.model.running())
    @rule(pick=PICK, signal=st.one_of(st.none(), SIGNALS), seconds=st.sampled_from([None, 0, 7, 30]))
    def wait(self, pick: int, signal: str | None, seconds: int | None) -> None:
        """A handler that comes to its next wait, and says so if it goes on."""
        candidates = [job for job in self.model.running() if job.wait is not None] or self.model.running()
        job = candidates[pick % len(candidates)]
        seconds = 7 if signal is None and seconds is None else seconds
        step, fence = f"wait{job.waits_done}", self.fence(job)
        expected = self.model.begin_wait(job, signal, seconds)
        [(answer,)] = self.sql(
            "select fenceline.begin_wait(%s, %s, %s, %s, %s::float8)", job.id, fence, step, signal, seconds
        )
        assert answer["ended"] == expected
        self.attempt(job).active_at = self.model.now  # a sign of life
        if expected is None:
            text = "select fenceline.finish_attempt(%s, %s, 'waiting')"
            assert self.sql(text, job.id, fence) == [("accepted",)]
            self.model.end_attempt(job, "waiting")

    @precondition(lambda self: self.model.jobs)
    @rule(pick=PICK, name=SIGNALS, other=RARELY)
    def signal(self, pick: int, name: str, other: bool) -> None:  # noqa: FBT001 - drawn by name
        """One that waits for it rather than one that does not."""
        jobs: list[Job] = list(self.model.jobs.values())
        candidates = [job for job in jobs if job.place == "signal"] or jobs
        job = candidates[pick % len(candidates)]
        if job.wait is not None and not other:
            name = job.wait.signal or name
        answers: Any = self.both(
            lambda: self.sql("select fenceline.signal_job(%s, %s)", job.id, name),
            lambda: self.model.signal(job, name),
        )
        if answers is not None:
            assert answers[0] == [(self.model.status(job)[0],)]
