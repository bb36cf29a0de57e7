"""What a job can be. The words are the same in SQL, Python, HTTP and on the command line."""

from enum import StrEnum


class Status(StrEnum):
    """Where a job is on its way; the last four are final."""

    AWAITING_APPROVAL = "awaiting_approval"
    WAITING = "waiting"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    SUCCEEDED_WITH_ERRORS = "succeeded_with_errors"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def is_success(self) -> bool:
        return self in (Status.SUCCEEDED, Status.SUCCEEDED_WITH_ERRORS)


FINAL = frozenset({Status.SUCCEEDED, Status.SUCCEEDED_WITH_ERRORS, Status.FAILED, Status.CANCELLED})
