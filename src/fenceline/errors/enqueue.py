"""A job was not enqueued."""

from fenceline.errors.base import FencelineError, RefusedError


class InvalidName(RefusedError):
    """A kind, lane or tenant is not a valid name."""

    code = "invalid_name"


class InvalidPriority(RefusedError):
    """The priority is out of range."""

    code = "invalid_priority"


class InvalidMaxAttempts(RefusedError):
    """max_attempts is out of range."""

    code = "invalid_max_attempts"


class TooLarge(RefusedError):
    """Args or a result are over the size limit."""

    code = "too_large"


class InvalidJson(RefusedError):
    """A value cannot be stored as JSON, for instance because of a zero character."""

    code = "invalid_json"


class InvalidOption(RefusedError):
    """An option is unknown, or its value breaks a rule."""

    code = "invalid_option"


class InvalidArgs(FencelineError):
    """Args do not fit the handler's signature; nothing was enqueued."""

    code = "invalid_args"
    of_claimed_job = False  # found out by whoever was to run it: another version of the handler may take them


class MissingDependency(RefusedError):
    """A job that should be waited for does not exist."""

    code = "missing_dependency"


class DependencyCycle(RefusedError):
    """Jobs of one call wait for each other."""

    code = "dependency_cycle"


class EmptyGroup(RefusedError):
    """The group that should be waited for has no jobs."""

    code = "empty_group"


class ResourceLocked(RefusedError):
    """Another job holds the resource; `detail` is its id."""

    code = "resource_locked"


class Draining(RefusedError):
    """The system is draining and accepts no new jobs from outside."""

    code = "draining"


class Limited(RefusedError):
    """The tenant has as many unfinished jobs as an operator allows; `detail` is the tenant."""

    code = "limited"


class IdentityRefused(RefusedError):
    """The kind does not let this tenant or role name this identity."""

    code = "identity_refused"


class KeyTaken(RefusedError):
    """The dedupe key or idempotency key belongs to a job that is not yours to see."""

    code = "key_taken"


class IdempotencyMismatch(RefusedError):
    """The idempotency key was used before, for another request."""

    code = "idempotency_mismatch"
