"""Every exception that Fenceline raises on purpose, by subject.

Each has a `code`, the same in Python, HTTP and the command line. `sqlstates.py` is the one place where a SQLSTATE of
the state machine becomes an exception; `server/problems.py` the one where an exception becomes an answer. It imports
nothing of Fenceline but `model`.
"""

import re
from datetime import timedelta

from fenceline.model.public_id import InvalidId as InvalidId

#: The longest delay that the state machine takes.
MAX_SECONDS = 1_000_000_000


# What all exceptions share.


class FencelineError(Exception):
    """The root of all of them."""


class RefusedError(FencelineError):
    """The state machine refused a call; the database is unchanged.

    `code` is the same word in SQL messages, HTTP problems and the command line; `detail` names the culprit where
    there is one (the holder of a lock, the status that did not fit).
    """

    code = "refused"

    def __init_subclass__(cls) -> None:
        """The code of each class below is its name: `LaneInUse` has the code `lane_in_use`."""
        super().__init_subclass__()
        if cls.__module__ == __name__ and "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.detail = detail
        self.hint = hint


class Unsupported(FencelineError):
    """Not possible where this handler runs."""


# A job was not enqueued.


class InvalidName(RefusedError):
    """A kind, lane or tenant is not a valid name."""


class InvalidPriority(RefusedError):
    """The priority is out of range."""


class InvalidMaxAttempts(RefusedError):
    """max_attempts is out of range."""


class TooLarge(RefusedError):
    """Args or a result are over the size limit."""


class InvalidJson(RefusedError):
    """A value cannot be stored as JSON, for instance because of a zero character."""


class InvalidOption(RefusedError):
    """An option is unknown, or its value breaks a rule."""


class InvalidArgs(FencelineError):
    """Args do not fit the handler's signature; nothing was enqueued."""

    code = "invalid_args"
    of_claimed_job = False  # found out by whoever was to run it: another version of the handler may take them


class MissingDependency(RefusedError):
    """A job that should be waited for does not exist."""


class DependencyCycle(RefusedError):
    """Jobs of one call wait for each other."""


class EmptyGroup(RefusedError):
    """The group that should be waited for has no jobs."""


class ResourceLocked(RefusedError):
    """Another job holds the resource; `detail` is its id."""


class Draining(RefusedError):
    """The system is draining and accepts no new jobs from outside."""


class Limited(RefusedError):
    """The tenant has as many unfinished jobs as an operator allows; `detail` is the tenant."""


class IdentityRefused(RefusedError):
    """The kind does not let this tenant or role name this identity."""


class KeyTaken(RefusedError):
    """The dedupe key or idempotency key belongs to a job that is not yours to see."""


class IdempotencyMismatch(RefusedError):
    """The idempotency key was used before, for another request."""


# A job is not there, does not allow it, or ended without a result.


class NotFound(RefusedError):
    """There is no such job."""


class MalformedId(RefusedError):
    """Not a public id: a wrong symbol, length or check symbol."""

    code = "invalid_id"


class WrongStatus(RefusedError):
    """The job's status does not allow this verb; `detail` is the status."""


class ArgsErased(RefusedError):
    """The job's args were erased, so it cannot be run again."""


class OwnApproval(RefusedError):
    """A job is not approved by the one who enqueued it (setting approval_by_other)."""


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


# What a worker, a runner or a handler may not do any more.


class StaleAttempt(RefusedError):
    """The attempt is gone: it was reclaimed, cancelled or finished."""


class WorkerLost(RefusedError):
    """The worker is not registered, or its lease is over."""


class StepMismatch(RefusedError):
    """The step was done before with other arguments: its name is used for two things."""


class LockCycle(RefusedError):
    """Blocks wait for each other's locks; `detail` is the job that holds the lock in question, if one does."""


class UnknownRunner(RefusedError):
    """There is no such runner, or it is somebody else's."""


class ForeignAttempt(RefusedError):
    """The attempt belongs to a worker, or to a runner of another token."""


# What a handler raises to say how its job goes on.


class Steering(FencelineError):
    """Raised by a handler to say how its attempt ends."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


def _seconds(what: str, given: float | timedelta) -> float:
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{what}={given!r} is out of range: use 0 to {MAX_SECONDS} seconds")
    return seconds


class RetryLater(Steering):
    """Fail this attempt and run again after so many seconds, if attempts remain; None: by the retry policy."""

    def __init__(self, reason: str = "asked to be retried later", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else _seconds("after", after)


class Snooze(Steering):
    """Run again after so many seconds; the attempt does not count."""

    def __init__(self, seconds: float | timedelta) -> None:
        self.seconds = _seconds("seconds", seconds)
        super().__init__(f"snoozed for {self.seconds} seconds")


class Fail(Steering):
    """Fail for good, whatever attempts remain."""


class Cancel(Steering):
    """End the job as cancelled."""


class Cancelled(Steering):
    """The job was asked to stop: raised at the handler's yield points."""


class Superseded(Steering):
    """A newer version of the resource was announced before: this job skips it. Uncaught, the job ends as cancelled."""


class Suspended(BaseException):
    """The handler waits: its attempt ends here, and it is run again when there is news.

    No `Exception`, so that a handler's `except Exception` lets it pass. Whoever catches all raises it again.
    """


# Locks of code outside handlers.


class LockTimeout(FencelineError, TimeoutError):
    """The lock could not be taken in time; the block has not been entered."""


class LockLost(FencelineError):
    """The lease of the lock has ended while the block ran: somebody else may have the lock since then."""


# Lanes and schedules.


class UnknownLane(RefusedError):
    """The lane does not exist."""


class InvalidLane(RefusedError):
    """A lane's setting breaks a rule, or the lane exists already."""


class LaneInUse(RefusedError):
    """The lane still has unfinished jobs, or is the default one."""


class LaneExists(InvalidLane):
    """A lane of that name is there already."""


class UnknownSchedule(RefusedError):
    """The schedule does not exist."""


class InvalidSchedule(RefusedError):
    """A schedule's setting breaks a rule, or the schedule exists already."""


# Tokens, roles and what they allow.


class UnknownRole(RefusedError):
    """There is no such role."""


class UnknownToken(RefusedError):
    """There is no such token."""


class InvalidAccess(RefusedError):
    """A setting of a token or a role breaks a rule."""


class NotYours(RefusedError):
    """Permissions, or tokens in a tenant, that the one who asks may not hand out."""


class AlreadyExists(RefusedError):
    """Something of that name is there already."""


class RoleInUse(RefusedError):
    """The role is built in, or valid tokens have it."""


# Webhooks, in and out.


class UnknownTrigger(RefusedError):
    """There is no such incoming webhook."""


class InvalidTrigger(RefusedError):
    """A setting of an incoming webhook breaks a rule, or a body does not fit it."""


class Replayed(RefusedError):
    """The very same signed request has been accepted before."""


class UnknownHook(RefusedError):
    """There is no such outgoing webhook."""


class InvalidHook(RefusedError):
    """A setting of an outgoing webhook breaks a rule."""


# The database cannot be reached, or not now.


class DatabaseUnavailable(FencelineError):
    """No connection could be made, or the server refuses for the time being (a full disk, say): nothing was done."""


class DatabaseBusy(FencelineError):
    """Others hold what the statement needs; it was given up, and nothing was done."""


class ConnectionLost(FencelineError):
    """The connection broke while a statement was under way: it may or may not have been carried out."""


class WrongIsolation(RefusedError):
    """Fenceline needs READ COMMITTED."""


# The embedded database, and the schema of any database.


class EmbeddedError(FencelineError):
    """The embedded PostgreSQL cannot be installed, started or stopped."""


class SchemaMissing(FencelineError):
    """The database has no Fenceline schema yet: run `fenceline migrate`."""


class SchemaOutdated(FencelineError):
    """The schema is older than this program needs: run `fenceline migrate`."""


class SchemaTooNew(FencelineError):
    """The schema has moved on past what this program understands: upgrade the program."""


class SchemaForeign(FencelineError):
    """A schema named `fenceline` exists that Fenceline did not make; it is left alone."""


class SchemaForbidden(FencelineError):
    """The database role may not use the schema: an administrator must grant it one of Fenceline's roles."""


class MigrationChanged(FencelineError):
    """A migration that this database has applied is not the one this program carries."""


class MigrationBlocked(FencelineError):
    """Other transactions held the locks that the migration needs. What it did stays and works; run it again."""
