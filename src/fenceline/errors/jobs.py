"""A job is not there, does not allow it, or ended without a result."""

from fenceline.errors.base import FencelineError, RefusedError


class NotFound(RefusedError):
    """There is no such job."""

    code = "not_found"


class MalformedId(RefusedError):
    """Not a public id: a wrong symbol, length or check symbol."""

    code = "invalid_id"


class WrongStatus(RefusedError):
    """The job's status does not allow this verb; `detail` is the status."""

    code = "wrong_status"


class ArgsErased(RefusedError):
    """The job's args were erased, so it cannot be run again."""

    code = "args_erased"


class OwnApproval(RefusedError):
    """A job is not approved by the one who enqueued it (setting approval_by_other)."""

    code = "own_approval"


class InvalidResult(FencelineError):
    """A stored result does not fit the type that the handler declares."""

    code = "invalid_result"


class Sealed(FencelineError):
    """What is stored was encrypted with a key that this program does not have."""

    code = "sealed"


class JobNotSuccessful(FencelineError):
    """The job whose result was awaited ended without one; `error` is what the queue keeps of it."""

    def __init__(self, message: str, *, error: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.error = error


class JobFailed(JobNotSuccessful):
    """The job whose result was awaited has failed permanently; `error` has its code and message."""


class JobCancelled(JobNotSuccessful):
    """The job was cancelled, rejected or expired."""
