"""What is known about a job: its attempts, steps, phases, events, log and locks, and why it is where it is.

`viewer` as in `jobs.py`.
"""

from fenceline.database.call import Call, function, records_of, value_of
from fenceline.database.calls.jobs import reach_of, seen_by
from fenceline.database.decoding import record
from fenceline.model.explanation import Explanation
from fenceline.model.identity import Identity
from fenceline.model.job import Checkpoint, LockRecord, LogLine, PhaseRecord, StepRecord
from fenceline.model.records import AttemptRecord, JobEvent


def list_attempts(job_id: int, viewer: Identity | None = None) -> Call[list[AttemptRecord]]:
    return records_of(AttemptRecord, function("list_attempts", job_id=seen_by(viewer, job_id)))


def list_steps(job_id: int, viewer: Identity | None = None) -> Call[list[StepRecord]]:
    return records_of(StepRecord, function("list_steps", job_id=seen_by(viewer, job_id)))


def get_checkpoint(job_id: int, viewer: Identity | None = None) -> Call[list[Checkpoint]]:
    """One, or none."""
    return records_of(Checkpoint, function("get_checkpoint", job_id=seen_by(viewer, job_id)))


def list_phases(job_id: int, viewer: Identity | None = None) -> Call[list[PhaseRecord]]:
    return records_of(PhaseRecord, function("list_phases", job_id=seen_by(viewer, job_id)))


def job_events(job_id: int, viewer: Identity | None = None) -> Call[list[JobEvent]]:
    return records_of(JobEvent, function("job_events", job_id=seen_by(viewer, job_id)))


def read_log(job_id: int, viewer: Identity | None = None, *, after: tuple[int, int], limit: int) -> Call[list[LogLine]]:
    """`after`: token and line of the last line that the caller has."""
    token, line = after
    called = function("read_log", job_id=seen_by(viewer, job_id), after_token=token, after_line=line, limit=limit)
    return records_of(LogLine, called)


def explain_job(job_id: int, viewer: Identity | None = None) -> Call[Explanation]:
    """Why it is where it is. Raises NotFound if it is missing, foreign or past its retention."""
    reach = {} if viewer is None else {**reach_of(viewer), "sees_fleet": viewer.may("workers:view")}
    return value_of(function("explain_job", job_id=job_id, **reach), record(Explanation), repeatable=True)


def describe_locks(
    job_id: int | None = None, viewer: Identity | None = None, *, tenant: str | None = None
) -> Call[list[LockRecord]]:
    """What a job holds and waits for, or all jobs. Raises NotFound."""
    reach = {"tenant": tenant} if viewer is None else reach_of(viewer)
    return records_of(LockRecord, function("describe_locks", job_id=job_id, **reach), "r")
