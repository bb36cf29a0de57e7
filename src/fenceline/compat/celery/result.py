"""`celery.result`: what became of tasks."""

import builtins
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from fenceline.app import Fenceline
from fenceline.client.sync_job import SyncJob
from fenceline.compat.celery.apps import apps
from fenceline.compat.celery.exceptions import TaskRevokedError, TimeoutError  # noqa: A004 - Celery's name
from fenceline.compat.celery.request import TASK_ID, current_request
from fenceline.compat.celery.states import FAILURE, PENDING, SUCCESS, state_of
from fenceline.errors import InvalidId, JobCancelled, JobFailed, NotFound, WrongStatus
from fenceline.model.job import JobRecord


class AsyncResult:
    """A task that was sent, known by the `task_id` that the caller chose, or by the id of its job."""

    def __init__(
        self,
        id: str | None = None,
        *,
        app: Fenceline | None = None,
        job: SyncJob[Any] | None = None,
        parent: "AsyncResult | GroupResult | None" = None,
    ) -> None:
        """Without `app` it is the one made last."""
        self._given_id = id
        self._app = app or apps.current()
        self._job = job
        self.parent = parent

    @property
    def id(self) -> str:
        return self._given_id if self._given_id is not None else self.job.id

    task_id = id

    def __repr__(self) -> str:
        return f"<AsyncResult: {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncResult) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def job(self) -> SyncJob[Any]:
        """Fenceline's handle. Raises NotFound."""
        if self._job is None:
            self._job = self._find(str(self._given_id))
        return self._job

    def get(
        self,
        timeout: float | None = None,
        propagate: bool = True,  # noqa: FBT001, FBT002 - as Celery has it
        interval: float | None = None,  # noqa: ARG002 - nothing polls
        *,
        disable_sync_subtasks: bool = True,
    ) -> Any:
        """Wait for the result. If the task failed, raise its exception, or return it with `propagate=False`.

        A built-in exception is raised as it was, any other as JobFailed. Raises TimeoutError, TaskRevokedError,
        NotFound.
        """
        if disable_sync_subtasks and current_request.get() is not None:
            raise RuntimeError(
                "result.get() within a task takes a worker's place to wait for another, and may wait for ever: "
                "use a chain or a chord"
            )
        try:
            return self.job.result(timeout)
        except (JobFailed, JobCancelled) as ended:
            error = _as_raised(ended)
            if not propagate:
                return error
            raise error from ended
        except builtins.TimeoutError as error:
            raise TimeoutError(f"task {self.id} has not ended after {timeout} seconds") from error

    wait = get

    @property
    def state(self) -> str:
        """PENDING, STARTED, RETRY, SUCCESS, FAILURE or REVOKED, or what the task has set with `update_state`."""
        record = self._record()
        return PENDING if record is None else state_of(record)

    status = state

    @property
    def result(self) -> Any:
        """The result, the exception, or the last meta that a running task gave `update_state`; else None."""
        record = self._record()
        if record is None:
            return None
        if record.status.is_final:
            return record.result if record.status.is_success else self.get(propagate=False, disable_sync_subtasks=False)
        return (record.progress or {}).get("meta")

    info = result

    @property
    def traceback(self) -> str | None:
        record = self._record()
        return None if record is None or record.error is None else record.error.get("traceback")

    @property
    def date_done(self) -> datetime | None:
        record = self._record()
        return None if record is None else record.finished_at

    def ready(self) -> bool:
        record = self._record()
        return record is not None and record.status.is_final

    def successful(self) -> bool:
        return self.state == SUCCESS

    def failed(self) -> bool:
        return self.state == FAILURE

    def revoke(
        self,
        connection: Any = None,  # noqa: ARG002 - Celery's, of the broker
        terminate: bool = False,  # noqa: FBT001, FBT002 - as Celery has it
        signal: Any = None,  # noqa: ARG002 - there is no process to send it to
        wait: bool = False,  # noqa: ARG002, FBT001, FBT002 - it is done when this returns
    ) -> None:
        """Cancel the job. A running task is asked to stop; with `terminate` it is fenced off at once."""
        with suppress(WrongStatus):  # it has ended
            self.job.cancel("revoked", force=terminate)

    def forget(self) -> None:
        """Delete the finished job. Raises WrongStatus."""
        self.job.delete()

    def _find(self, task_id: str) -> SyncJob[Any]:
        jobs = self._app.sync.jobs
        try:
            return jobs.handle(task_id)
        except InvalidId:
            found = jobs.list(limit=1, labels={TASK_ID: task_id}).items
        if not found:
            raise NotFound(f"no task has the id {task_id!r}")
        return jobs.handle(found[0].id)

    def _record(self) -> JobRecord | None:
        try:
            return self.job.get()
        except NotFound:  # PENDING, as in Celery
            return None


class GroupResult:
    """Tasks that were sent together, in their order."""

    def __init__(
        self,
        id: str,
        results: Sequence[AsyncResult],
        *,
        parent: "AsyncResult | GroupResult | None" = None,
    ) -> None:
        self.id = id
        self.results = self.children = list(results)
        self.parent = parent

    def __iter__(self) -> Iterator[AsyncResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> AsyncResult:
        return self.results[index]

    def get(self, timeout: float | None = None, propagate: bool = True) -> list[Any]:  # noqa: FBT001, FBT002 - Celery's
        """Wait for all results. Raises what the first failed one raised; see `AsyncResult.get`."""
        until = None if timeout is None else time.monotonic() + timeout
        return [
            result.get(None if until is None else max(0.0, until - time.monotonic()), propagate)
            for result in self.results
        ]

    join = get

    def ready(self) -> bool:
        return all(result.ready() for result in self.results)

    def successful(self) -> bool:
        return all(result.successful() for result in self.results)

    def failed(self) -> bool:
        return any(result.failed() for result in self.results)

    def waiting(self) -> bool:
        return not self.ready()

    def completed_count(self) -> int:
        return sum(result.successful() for result in self.results)

    def revoke(self, terminate: bool = False) -> None:  # noqa: FBT001, FBT002 - as Celery has it
        for result in self.results:
            result.revoke(terminate=terminate)


def _as_raised(ended: JobFailed | JobCancelled) -> Exception:
    """The exception for the caller. Only built-in ones are recreated: nothing is imported by a name in a database."""
    if isinstance(ended, JobCancelled):
        return TaskRevokedError(str(ended))
    error = ended.error or {}
    kind = getattr(builtins, str(error.get("type")), None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with suppress(TypeError):  # it takes more than a message
            return kind(error.get("message"))
    return ended
