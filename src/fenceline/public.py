"""The public names; `from fenceline import …` finds them here."""

from fenceline.app import Fenceline
from fenceline.client.batch_handler import BatchHandler
from fenceline.client.enqueue_options import After, EnqueueOptions
from fenceline.client.groups import Group
from fenceline.client.handler import Handler
from fenceline.client.job import Job
from fenceline.client.schedule_decorator import ScheduleSettings
from fenceline.client.sync_job import SyncJob
from fenceline.context.batch_context import BatchContext, SyncBatchContext
from fenceline.context.batch_item import BatchItem
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
    LockLost,
    LockTimeout,
    NotFound,
    RefusedError,
    ResourceLocked,
    RetryLater,
    Sealed,
    Snooze,
    StaleAttempt,
    StepMismatch,
    Superseded,
    UnknownSchedule,
    Unsupported,
    WrongStatus,
)
from fenceline.model.job import JobPage, JobRecord, Lane, LockRecord, LogLine, PhaseRecord, Progress, StepRecord
from fenceline.model.records import WatchEvent
from fenceline.model.retry import Retry
from fenceline.model.schedule import Schedule, Tick
from fenceline.model.sealed import Codec
from fenceline.model.status import Status
from fenceline.model.with_errors import WithErrors
from fenceline.runtime.lock_keeper import HeldLock

__all__ = [
    "After",
    "BatchContext",
    "BatchHandler",
    "BatchItem",
    "Cancel",
    "Cancelled",
    "Codec",
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
    "HeldLock",
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
    "LockLost",
    "LockRecord",
    "LockTimeout",
    "LogLine",
    "NotFound",
    "PhaseRecord",
    "Progress",
    "RefusedError",
    "ResourceLocked",
    "Retry",
    "RetryLater",
    "Schedule",
    "ScheduleSettings",
    "Sealed",
    "Snooze",
    "StaleAttempt",
    "Status",
    "StepMismatch",
    "StepRecord",
    "Superseded",
    "SyncBatchContext",
    "SyncContext",
    "SyncJob",
    "Tick",
    "UnknownSchedule",
    "Unsupported",
    "WatchEvent",
    "WithErrors",
    "WrongStatus",
]
