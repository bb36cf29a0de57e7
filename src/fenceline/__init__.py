"""A PostgreSQL-native job queue for jobs that matter: fenced, durable, watched by people."""

from fenceline.client.app import Fenceline, Handler
from fenceline.client.options import After, EnqueueOptions
from fenceline.client.sync_verbs import SyncJob
from fenceline.client.verbs import Job
from fenceline.errors import (
    Cancel,
    Cancelled,
    ConnectionLost,
    DatabaseUnavailable,
    Draining,
    Fail,
    FencelineError,
    InvalidArgs,
    InvalidId,
    JobCancelled,
    JobFailed,
    NotFound,
    RefusedError,
    ResourceLocked,
    RetryLater,
    Snooze,
    WrongStatus,
)
from fenceline.model.job import JobPage, JobRecord, Lane, LogLine, Progress
from fenceline.model.retry import Retry
from fenceline.model.status import Status
from fenceline.worker.context import Context

__all__ = [
    "After",
    "Cancel",
    "Cancelled",
    "ConnectionLost",
    "Context",
    "DatabaseUnavailable",
    "Draining",
    "EnqueueOptions",
    "Fail",
    "Fenceline",
    "FencelineError",
    "Handler",
    "InvalidArgs",
    "InvalidId",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobPage",
    "JobRecord",
    "Lane",
    "LogLine",
    "NotFound",
    "Progress",
    "RefusedError",
    "ResourceLocked",
    "Retry",
    "RetryLater",
    "Snooze",
    "Status",
    "SyncJob",
    "WrongStatus",
]
