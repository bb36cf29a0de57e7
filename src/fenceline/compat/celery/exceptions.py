"""Celery's exceptions. Those that a task raises to steer its job are kinds of Fenceline's."""

# ruff: noqa: A001 - the names are Celery's

import builtins
from typing import Any

from fenceline.compat.celery.absent import refuse_names
from fenceline.errors import Cancel, Fail, RetryLater, Unsupported


class CeleryError(Exception):
    """The base of the exceptions that a caller gets."""


class Retry(RetryLater):
    """Raised by `self.retry()`: the task runs again."""


class Ignore(Cancel):
    """Raised by a task that has no result: its job ends as cancelled."""


class Reject(Fail):
    """Raised by a task that must not be retried: its job has failed."""

    def __init__(self, reason: Any = None, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - as Celery has it
        if requeue:
            raise Unsupported("Reject(requeue=True) is not there: use self.retry(), which counts the attempts")
        super().__init__("rejected" if reason is None else str(reason))


class MaxRetriesExceededError(CeleryError):
    """`self.retry()` was called in the last attempt."""


class TimeoutError(CeleryError, builtins.TimeoutError):
    """The task did not end in time."""


class TaskRevokedError(CeleryError):
    """The task was revoked, or expired: there is no result."""


LIMITS = "a task with time_limit= ends as failed when its time is over, and cannot catch that"
__getattr__ = refuse_names(__name__, {"SoftTimeLimitExceeded": LIMITS, "TimeLimitExceeded": LIMITS})
