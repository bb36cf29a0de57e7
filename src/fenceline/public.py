"""The public names; `from fenceline import …` finds them here."""

from fenceline.client.app import Fenceline
from fenceline.client.groups import Group
from fenceline.client.handler import Handler
from fenceline.client.job_verbs import Job
from fenceline.client.options import After, EnqueueOptions
from fenceline.client.schedules import ScheduleSettings
from fenceline.client.sync_job_verbs import SyncJob
from fenceline.context.context import Context
from fenceline.context.sync_context import SyncContext
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
    InvalidResult,
    InvalidSchedule,
    JobCancelled,
    JobFailed,
    Limited,
    LockCycle,
    NotFound,
    RefusedError,
    ResourceLocked,
    RetryLater,
    Snooze,
    StaleAttempt,
    StepMismatch,
    Superseded,
    UnknownSchedule,
    Unsupported,
    WrongStatus,
)
from fenceline.model.job import JobPage, JobRecord, Lane, LockRecord, LogLine, Progress, StepRecord
from fenceline.model.retry import Retry
from fenceline.model.schedule import Schedule, Tick
from fenceline.model.status import Status
from fenceline.model.with_errors import WithErrors

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
    "Group",
    "Handler",
    "InvalidArgs",
    "InvalidId",
    "InvalidResult",
    "InvalidSchedule",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobPage",
    "JobRecord",
    "Lane",
    "Limited",
    "LockCycle",
    "LockRecord",
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
    "StaleAttempt",
    "Status",
    "StepMismatch",
    "StepRecord",
    "Superseded",
    "SyncContext",
    "SyncJob",
    "Tick",
    "UnknownSchedule",
    "Unsupported",
    "WithErrors",
    "WrongStatus",
]
