"""What there is to know of a job: its attempts, steps, phases, events, log and locks, and why it is where it is.

`viewer` as in `jobs.py`.
"""

from fenceline.database.call import Call, function, rows_of, value_of
from fenceline.database.calls.jobs import seen_by
from fenceline.database.decoding import record, records
from fenceline.model.explanation import Explanation
from fenceline.model.identity import Identity
from fenceline.model.job import Checkpoint, LockRecord, LogLine, PhaseRecord, StepRecord
from fenceline.model.records import AttemptRecord, JobEvent


def list_attempts(job_id: int, viewer: Identity | None = None) -> Call[list[AttemptRecord]]:
    called = function("list_attempts", job_id=seen_by(viewer, job_id))
    return rows_of(called, "to_jsonb(r)", records(AttemptRecord), repeatable=True)


def list_steps(job_id: int, viewer: Identity | None = None) -> Call[list[StepRecord]]:
    called = function("list_steps", job_id=seen_by(viewer, job_id))
    return rows_of(called, "to_jsonb(r)", records(StepRecord), repeatable=True)


def get_checkpoint(job_id: int, viewer: Identity | None = None) -> Call[list[Checkpoint]]:
    """One, or none."""
    called = function("get_checkpoint", job_id=seen_by(viewer, job_id))
    return rows_of(called, "to_jsonb(r)", records(Checkpoint), repeatable=True)


def list_phases(job_id: int, viewer: Identity | None = None) -> Call[list[PhaseRecord]]:
    called = function("list_phases", job_id=seen_by(viewer, job_id))
    return rows_of(called, "to_jsonb(r)", records(PhaseRecord), repeatable=True)


def job_events(job_id: int, viewer: Identity | None = None) -> Call[list[JobEvent]]:
    called = function("job_events", job_id=seen_by(viewer, job_id))
    return rows_of(called, "to_jsonb(r)", records(JobEvent), repeatable=True)


def read_log(job_id: int, viewer: Identity | None = None, *, after: tuple[int, int], limit: int) -> Call[list[LogLine]]:
    """`after`: token and line of the last one that is known."""
    token, line = after
    called = function("read_log", job_id=seen_by(viewer, job_id), after_token=token, after_line=line, limit=limit)
    return rows_of(called, "to_jsonb(r)", records(LogLine), repeatable=True)


def explain_job(job_id: int, viewer: Identity | None = None) -> Call[Explanation]:
    """Why it is where it is. Raises NotFound for what is missing, foreign or past its retention."""
    seen = (
        {}
        if viewer is None
        else {
            "tenant": viewer.reach,
            "created_by": viewer.only_created_by,
            "sees_fleet": viewer.may("workers:view"),
        }
    )
    return value_of(function("explain_job", job_id=job_id, **seen), record(Explanation), repeatable=True)


def describe_locks(
    job_id: int | None = None, viewer: Identity | None = None, *, tenant: str | None = None
) -> Call[list[LockRecord]]:
    """What a job holds and waits for, or all jobs. Raises NotFound."""
    seen = {"tenant": tenant} if viewer is None else {"tenant": viewer.reach, "created_by": viewer.only_created_by}
    return rows_of(function("describe_locks", job_id=job_id, **seen), "r", records(LockRecord), repeatable=True)
