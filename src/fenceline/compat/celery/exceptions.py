"""Celery's exceptions by name; those that steer a task are Fenceline's own."""

# ruff: noqa: A001 - the names are Celery's

import builtins

from fenceline.errors import Cancel, RetryLater


class CeleryError(Exception):
    """The root of those that are no steering."""


class Retry(RetryLater):
    """The task is to be run again: raised by `self.retry()`."""


class Ignore(Cancel):
    """Raised by a task that has nothing to say: its job ends as cancelled."""


class MaxRetriesExceededError(CeleryError):
    """`self.retry()` was called by the last attempt."""


class TimeoutError(CeleryError, builtins.TimeoutError):
    """The task did not end in time."""


class TaskRevokedError(CeleryError):
    """The task was revoked, or expired: there is no result."""
