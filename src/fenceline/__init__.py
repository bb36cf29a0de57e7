"""A PostgreSQL-native job queue for jobs that matter: fenced, durable, watched by people."""

from fenceline.client.app import Fenceline, Handler
from fenceline.client.options import After, EnqueueOptions
from fenceline.client.schedules import ScheduleSettings
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
    InvalidSchedule,
    JobCancelled,
    JobFailed,
    NotFound,
    RefusedError,
    ResourceLocked,
    RetryLater,
    Snooze,
    UnknownSchedule,
    WrongStatus,
)
from fenceline.model.job import JobPage, JobRecord, Lane, LogLine, Progress
from fenceline.model.retry import Retry
from fenceline.model.schedule import Schedule, Tick
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
    "InvalidSchedule",
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
    "Schedule",
    "ScheduleSettings",
    "Snooze",
    "Status",
    "SyncJob",
    "Tick",
    "UnknownSchedule",
    "WrongStatus",
]
