"""What a worker, a runner or a handler may not do any more."""

from fenceline.errors.base import RefusedError


class StaleAttempt(RefusedError):
    """The attempt is gone: it was reclaimed, cancelled or finished."""

    code = "stale_attempt"


class WorkerLost(RefusedError):
    """The worker is not registered, or its lease is over."""

    code = "worker_lost"


class StepMismatch(RefusedError):
    """The step was done before with other arguments: its name is used for two things."""

    code = "step_mismatch"


class LockCycle(RefusedError):
    """Blocks wait for each other's locks; `detail` is the job that holds the lock in question, if one does."""

    code = "lock_cycle"


class UnknownRunner(RefusedError):
    """There is no such runner, or it is somebody else's."""

    code = "unknown_runner"


class ForeignAttempt(RefusedError):
    """The attempt belongs to a worker, or to a runner of another token."""

    code = "foreign_attempt"
