"""How an attempt ends, and how its handler is run. The words are those of SQL and HTTP."""

from enum import StrEnum
from typing import assert_never


class Outcome(StrEnum):
    """How an attempt ended, as its worker reports it."""

    SUCCEEDED = "succeeded"
    SUCCEEDED_WITH_ERRORS = "succeeded_with_errors"
    FAILED = "failed"  # to be tried again, as long as there are attempts
    FAILED_FOR_GOOD = "failed_for_good"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"  # to go on later, as the same attempt
    WAITING = "waiting"  # to go on, as the same attempt, when what its handler waits for has happened
    RELEASED = "released"  # given back: it has not run, or not to its end
    REFUSED = "refused"  # the handler does not take the args: for a worker of another version
    CRASHED = "crashed"  # its process has died

    @property
    def is_success(self) -> bool:
        return self in {Outcome.SUCCEEDED, Outcome.SUCCEEDED_WITH_ERRORS}

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong. An attempt that was stopped, or that goes on later, has not failed."""
        match self:
            case Outcome.FAILED | Outcome.FAILED_FOR_GOOD | Outcome.REFUSED | Outcome.CRASHED:
                return True
            case Outcome.SUCCEEDED | Outcome.SUCCEEDED_WITH_ERRORS | Outcome.CANCELLED:
                return False
            case Outcome.SNOOZED | Outcome.WAITING | Outcome.RELEASED:
                return False
            case _ as unknown:
                assert_never(unknown)


class Mode(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    THREAD = "thread"
    ISOLATED = "isolated"  # in a process of its own
    BATCH = "batch"  # together with others of its kind, on the loop or in a thread
