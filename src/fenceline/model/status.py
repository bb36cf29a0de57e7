"""What a job can be. The words are the same in SQL, Python, HTTP and on the command line."""

from enum import StrEnum
from typing import Literal


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
        """Whether the job has ended."""
        return self in FINAL

    @property
    def is_success(self) -> bool:
        """Whether it ended well, with errors or without."""
        return self in (Status.SUCCEEDED, Status.SUCCEEDED_WITH_ERRORS)


FINAL = frozenset({Status.SUCCEEDED, Status.SUCCEEDED_WITH_ERRORS, Status.FAILED, Status.CANCELLED})
#: The same, where a value can only be one of them.
FinalStatus = Literal["succeeded", "succeeded_with_errors", "failed", "cancelled"]
