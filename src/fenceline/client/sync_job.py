"""The blocking twin of job.py.

Generated from job.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar
from uuid import uuid4

from fenceline.client.arguments import Arguments, encode_payload
from fenceline.client.sync_database import GetSyncDatabase
from fenceline.client.sync_verbs import Verbs
from fenceline.client.sync_watching import watch_job
from fenceline.database import calls
from fenceline.errors import JobCancelled, JobFailed, NotFound, WrongStatus
from fenceline.model.explanation import Explanation
from fenceline.model.job import (
    JobFilter,
    JobOutcome,
    JobPage,
    JobRecord,
    LockRecord,
    LogLine,
    PhaseRecord,
    Progress,
    StepRecord,
)
from fenceline.model.public_id import format_id, parse_id
from fenceline.model.records import AttemptRecord, JobEvent, WatchEvent
from fenceline.model.status import Status

R_co = TypeVar("R_co", covariant=True)


class SyncJob(Verbs, Generic[R_co]):
    """A handle to one job: cheap to make, and without state but the job's id.

    `created` is False if an enqueue returned an existing job (dedupe key, idempotency key).
    """

    __slots__ = ("_arguments", "_known_id", "_ref", "created")

    def __init__(
        self,
        get_database: GetSyncDatabase,
        job_id: int | None,
        *,
        created: bool = True,
        arguments: Arguments | None = None,
        ref: str | None = None,
    ) -> None:
        """`job_id` None: it is enqueued later, with its group, which calls it `ref`."""
        self._get_database = get_database  # not by super(): an enqueue may return tens of thousands
        self._known_id = job_id
        self._ref = ref
        self._arguments = arguments
        self.created = created

    @property
    def id(self) -> str:
        """The public id, as people and other systems see it; in the block of a group, the job's name there."""
        return f"@{self._ref}" if self._known_id is None else format_id(self._known_id)

    @property
    def _job_id(self) -> int:
        if self._known_id is None:
            raise WrongStatus("the job is enqueued when the block of its group ends: it has no id before")
        return self._known_id

    def _enqueued(self, job_id: int, *, created: bool) -> None:
        """The block of its group has ended, and the job exists."""
        self._known_id = job_id
        self.created = created

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SyncJob) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def get(self) -> JobRecord:
        """Everything known about the job now. Raises NotFound."""
        record = self._call(calls.jobs.describe_job(self._job_id))
        if record is None:
            raise NotFound(f"job {self.id} does not exist")
        return record

    def explain(self) -> Explanation:
        """Why the job is where it is: what it waits for, since when, and what would change that. Raises NotFound.

        >>> print((job.explain()).text)
        No live worker serves lane default (0 live in all).
        """
        return self._call(calls.job_records.explain_job(self._job_id))

    def status(self) -> Status:
        """The job's status now. Raises NotFound."""
        return (self.get()).status

    def wait(self, timeout: float | None = None) -> Status:
        """Wait until the job has ended, and return how. Raises TimeoutError, NotFound."""
        return (self._outcome(timeout)).status

    def result(self, timeout: float | None = None) -> R_co:
        """Wait until the job has ended and return its result, as the type its handler declares.

        Raises JobFailed or JobCancelled when there is none, TimeoutError, NotFound.
        """
        outcome = self._outcome(timeout)
        if not outcome.status.is_success:
            error = outcome.error or {}
            kind = JobFailed if outcome.status is Status.FAILED else JobCancelled
            raise kind(
                f"job {self.id} {outcome.status}: {error.get('message', 'no reason given')}",
                error=outcome.error,
            )
        if self._arguments is None:
            return outcome.result  # type: ignore[no-any-return]  # enqueued by name: any JSON
        return self._arguments.decode_result(outcome.result)  # type: ignore[no-any-return]  # checked by pydantic

    def cancel(
        self,
        reason: str | None = None,
        *,
        force: bool = False,
        grace_seconds: float | None = None,
        actor: str | None = None,
    ) -> Status:
        """Cancel the job: at once if no worker holds it, otherwise by asking its handler to stop.

        The handler has `grace_seconds` (30 by default) to do so; with `force` it loses its claim at once. Returns the
        status afterwards. Raises WrongStatus if the job has ended.
        """
        return self._call(
            calls.jobs.cancel_job(
                self._job_id,
                actor=self._actor(actor),
                reason=reason,
                force=force,
                grace_seconds=grace_seconds,
            )
        )

    def approve(self, reason: str | None = None, *, actor: str | None = None) -> Status:
        """Let a job that awaits approval go on. Raises WrongStatus."""
        return self._call(calls.jobs.approve_job(self._job_id, actor=self._actor(actor), reason=reason))

    def reject(self, reason: str | None = None, *, actor: str | None = None) -> Status:
        """End a job that awaits approval. Raises WrongStatus."""
        return self._call(calls.jobs.reject_job(self._job_id, actor=self._actor(actor), reason=reason))

    def retry(self, *, actor: str | None = None) -> "SyncJob[R_co]":
        """Run a finished job again, as a new job with the same args and snapshot. Raises WrongStatus."""
        job_id = self._call(calls.jobs.retry_job(self._job_id, actor=self._actor(actor)))
        return SyncJob(self._get_database, job_id, arguments=self._arguments)

    def reprioritise(self, priority: int, *, actor: str | None = None) -> int:
        """Change the priority of a job that no worker holds; returns the one it had. Raises WrongStatus."""
        return self._call(calls.jobs.reprioritise_job(self._job_id, priority, actor=self._actor(actor)))

    def run_now(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Let a job that is scheduled, or waits for its retry, go on at once. Raises WrongStatus."""
        self._call(calls.jobs.run_job_now(self._job_id, actor=self._actor(actor), reason=reason))

    def signal(self, name: str, payload: Any = None, *, actor: str | None = None, connection: Any = None) -> Status:
        """Send a signal to the job's handler (`ctx.wait_for`), kept until it is waited for; returns the status.

        `connection`: in your transaction, as for an enqueue. Raises WrongStatus if the job has ended, InvalidArgs if
        the payload cannot be written as JSON, Limited if 1000 signals are waiting to be taken.
        """
        text = None if payload is None else encode_payload(name, payload)
        call = calls.jobs.signal_job(self._job_id, name, text, actor=self._actor(actor), request_id=uuid4())
        return self._call(call, connection)

    def move(self, lane: str, reason: str | None = None, *, actor: str | None = None) -> str:
        """Move a job that no worker holds to another lane; returns the one it was in. Raises WrongStatus."""
        return self._call(calls.jobs.move_job(self._job_id, lane, actor=self._actor(actor), reason=reason))

    def delete(self, *, actor: str | None = None) -> None:
        """Delete a finished job and everything kept about it. Raises WrongStatus."""
        self._call(calls.jobs.delete_job(self._job_id, actor=self._actor(actor)))

    def erase_args(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Replace the args of a finished job with a marker; it cannot be retried afterwards. Raises WrongStatus."""
        self._call(calls.jobs.erase_args(self._job_id, actor=self._actor(actor), reason=reason))

    def logs(self, *, after: LogLine | None = None, limit: int = 1000) -> list[LogLine]:
        """Log lines of all attempts in order, after a given one."""
        place = (0, 0) if after is None else (after.token, after.line)
        return self._call(calls.job_records.read_log(self._job_id, after=place, limit=limit))

    def watch(self) -> Iterator[WatchEvent]:
        """The job's news, from its state and its log so far to its end: `status`, `progress` and `log`, as over HTTP.

            for event in job.watch():
                print(event.event, event.line or event.progress)

        The latest state, and every log line; it looks four times a second. Raises NotFound.
        """
        return watch_job(self._get_database, self._job_id)

    def attempts(self) -> list[AttemptRecord]:
        """Every attempt of the job, the live one included, first to last."""
        return self._call(calls.job_records.list_attempts(self._job_id))

    def events(self) -> list[JobEvent]:
        """What happened to the job, first to last, and who did it: workers and people."""
        return self._call(calls.job_records.job_events(self._job_id))

    def snapshot(self) -> Any:
        """The configuration that the job was enqueued with, or None; its hash is `snapshot_hash` of `get()`."""
        return self._call(calls.jobs.job_snapshot(self._job_id))

    def steps(self) -> list[StepRecord]:
        """The job's steps in order: done, failed, and listed but still to come. Raises NotFound."""
        return self._call(calls.job_records.list_steps(self._job_id))

    def children(self, *, limit: int = 50, cursor: str | None = None) -> JobPage:
        """One page of the jobs that the job's handler made (`ctx.enqueue`), newest first. Raises InvalidId (cursor)."""
        place = None if cursor is None else parse_id(cursor)
        return self._call(calls.jobs.page_jobs(JobFilter(parent=self.id), limit=limit, cursor=place))

    def locks(self) -> list[LockRecord]:
        """The locks, resource locks and keys that the job holds or waits for, with the holder. Raises NotFound."""
        return self._call(calls.job_records.describe_locks(self._job_id))

    def phases(self) -> list[PhaseRecord]:
        """The phases of all attempts in order, each with its progress and items. Raises NotFound."""
        return self._call(calls.job_records.list_phases(self._job_id))

    def progress(self) -> Progress:
        """The phase and progress that the handler last reported."""
        record = self.get()
        return Progress(phase=record.phase, progress=record.progress)

    def _outcome(self, timeout: float | None) -> JobOutcome:
        outcome = self._get_database().wait(self._job_id, timeout)
        if outcome is None:
            raise NotFound(f"job {self.id} does not exist")
        return outcome
