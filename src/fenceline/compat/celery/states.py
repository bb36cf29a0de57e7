"""`celery.states`: a job's status in Celery's words."""

from fenceline.model.job import JobRecord
from fenceline.model.status import Status

PENDING = "PENDING"
STARTED = "STARTED"
RETRY = "RETRY"
SUCCESS = "SUCCESS"
FAILURE = "FAILURE"
REVOKED = "REVOKED"

READY_STATES = frozenset({SUCCESS, FAILURE, REVOKED})


def state_of(record: JobRecord) -> str:
    """The state; while the task runs, the one it has set with `update_state`, or STARTED."""
    match record.status:
        case Status.SUCCEEDED | Status.SUCCEEDED_WITH_ERRORS:
            return SUCCESS
        case Status.FAILED:
            return FAILURE
        case Status.CANCELLED:
            return REVOKED
        case Status.CLAIMED | Status.RUNNING:
            return record.phase or STARTED
        case _:
            return RETRY if record.attempt else PENDING
