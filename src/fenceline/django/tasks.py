"""A backend for Django's tasks: `django.tasks` of Django 6, or the package `django-tasks` before.

    TASKS = {"default": {"BACKEND": "fenceline.django.tasks.FencelineBackend"}}

A task is a job of the kind `django.task`, in the lane named like its queue.
"""

import re
from traceback import format_exception
from typing import Any

from django.utils import timezone
from django.utils.module_loading import import_string

from fenceline.context.sync_context import SyncContext
from fenceline.django import app
from fenceline.errors import Fail, InvalidId, NotFound
from fenceline.model.job import JobRecord
from fenceline.model.status import Status

try:
    from django.tasks import TaskContext, TaskResult, TaskResultStatus
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
except ImportError:
    from django_tasks import TaskContext, TaskResult, TaskResultStatus
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskError
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

KIND = "django.task"
_STATUSES = {
    Status.CLAIMED: TaskResultStatus.RUNNING,
    Status.RUNNING: TaskResultStatus.RUNNING,
    Status.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    Status.SUCCEEDED_WITH_ERRORS: TaskResultStatus.SUCCESSFUL,
    Status.FAILED: TaskResultStatus.FAILED,
    Status.CANCELLED: TaskResultStatus.FAILED,
}


class FencelineBackend(BaseTaskBackend):
    """`OPTIONS`: `MAX_ATTEMPTS` (default 1: a task that raises has failed) and `TIMEOUT` in seconds."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Enqueue in the transaction of Django's connection, if there is one. Raises what an enqueue raises."""
        self.validate_task(task)
        args, kwargs = normalize_json([list(args), dict(kwargs)])
        job = app.sync.enqueue(
            KIND,
            {"task": task.module_path, "backend": self.alias, "args": args, "kwargs": kwargs},
            lane=task.queue_name,
            priority=task.priority,
            run_at=task.run_after,
            max_attempts=self.options.get("MAX_ATTEMPTS", 1),
            timeout=self.options.get("TIMEOUT"),
            labels={"task": task.module_path[-200:]},
        )
        result = self._result_of(task, job.get())
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Raises TaskResultDoesNotExist."""
        try:
            record = app.sync.jobs.get(result_id)
        except (NotFound, InvalidId) as error:
            raise TaskResultDoesNotExist(result_id) from error
        if record.kind != KIND:
            raise TaskResultDoesNotExist(result_id)
        return self._result_of(import_string(record.args["task"]), record)

    def _result_of(self, task: Task, record: JobRecord) -> TaskResult:
        result = TaskResult(
            task=task,
            id=record.id,
            status=_STATUSES.get(record.status, TaskResultStatus.READY),
            enqueued_at=record.created_at,
            started_at=record.started_at,
            finished_at=record.finished_at,
            last_attempted_at=record.started_at,
            args=record.args["args"],
            kwargs=record.args["kwargs"],
            backend=self.alias,
            errors=errors_of(record),
            worker_ids=[record.worker or ""] * record.attempt,
        )
        object.__setattr__(result, "_return_value", record.result)  # as Django's own backends do
        return result


@app.job(kind=KIND)
def run_task(ctx: SyncContext, task: str, backend: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a task in a thread, on an event loop there if it is async."""
    found = import_string(task)
    if not isinstance(found, Task):
        raise Fail(f"{task} is no longer a task")
    owner = found.using(backend=backend).get_backend()
    result = owner.get_result(str(ctx.job))
    task_started.send(type(owner), task_result=result)
    try:
        context = (TaskContext(task_result=result),) if found.takes_context else ()
        value = normalize_json(found.call(*context, *args, **kwargs))
    except BaseException as error:
        if ctx.attempt >= ctx.job.max_attempts:  # otherwise the task runs again
            failed = TaskError(exception_class_path=_path_of(type(error)), traceback="".join(format_exception(error)))
            _tell_finished(owner, result, status=TaskResultStatus.FAILED, errors=[failed])
        raise
    _tell_finished(owner, result, status=TaskResultStatus.SUCCESSFUL, _return_value=value)
    return value


def _tell_finished(owner: BaseTaskBackend, result: TaskResult, **facts: Any) -> None:
    """Send the signal, with the result as it will be when the job has ended."""
    for name, value in {"finished_at": timezone.now(), **facts}.items():
        object.__setattr__(result, name, value)
    task_finished.send(type(owner), task_result=result)


def _path_of(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def errors_of(record: JobRecord) -> list[TaskError]:
    if record.error is None:
        return []
    traceback = record.error.get("traceback") or ""
    return [TaskError(exception_class_path=_class_path(record.error, traceback), traceback=traceback)]


def _class_path(error: dict[str, Any], traceback: str) -> str:
    """Where to import the exception's class: a traceback ends with its full name, except for built-in ones."""
    name = str(error.get("type") or "Exception")
    full = re.findall(rf"^((?:\w+\.)+{re.escape(name)})(?::|$)", traceback, re.MULTILINE)
    return str(full[-1]) if full else f"builtins.{name}"
