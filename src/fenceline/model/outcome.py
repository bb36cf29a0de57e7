"""How an attempt ends, and how its handler is run. The words are those of SQL and HTTP."""

from enum import StrEnum


class Outcome(StrEnum):
    """How an attempt ended, as whoever ran it says."""

    SUCCEEDED = "succeeded"
    SUCCEEDED_WITH_ERRORS = "succeeded_with_errors"
    FAILED = "failed"  # to be tried again, as long as there are attempts
    FAILED_FOR_GOOD = "failed_for_good"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"  # to go on later, as the same attempt
    WAITING = "waiting"  # to go on, as the same attempt, when what its handler waits for has come
    RELEASED = "released"  # given back: it has not run, or not to its end
    REFUSED = "refused"  # the handler does not take the args: for a worker of another version
    CRASHED = "crashed"  # its process has died

    @property
    def is_success(self) -> bool:
        return self in {Outcome.SUCCEEDED, Outcome.SUCCEEDED_WITH_ERRORS}


class Mode(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    THREAD = "thread"
    ISOLATED = "isolated"  # in a process of its own
    BATCH = "batch"  # together with others of its kind, on the loop or in a thread
