"""Every exception that Fenceline raises on purpose."""

# ruff: noqa: N818 - named after what is wrong, which reads better than a suffix on each

from datetime import timedelta

from fenceline.model.public_id import InvalidId as InvalidId  # noqa: PLC0414 - re-exported

#: The longest delay that the state machine takes.
MAX_SECONDS = 1_000_000_000


class FencelineError(Exception):
    """The root of all of them."""


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
    """Other transactions held the locks that the migration needs; nothing was changed, try again."""


class RefusedError(FencelineError):
    """The state machine refused a call; the database is unchanged.

    `code` is the same word in SQL messages, HTTP problems and the command line; `detail` names the culprit where
    there is one (the holder of a lock, the status that did not fit).
    """

    code = "refused"

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.detail = detail
        self.hint = hint


class UnknownLane(RefusedError):
    """The lane does not exist."""

    code = "unknown_lane"


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


class MissingDependency(RefusedError):
    """A job that should be waited for does not exist."""

    code = "missing_dependency"


class DependencyCycle(RefusedError):
    """Jobs of one call wait for each other."""

    code = "dependency_cycle"


class NotFound(RefusedError):
    """There is no such job."""

    code = "not_found"


class WrongStatus(RefusedError):
    """The job's status does not allow this verb; `detail` is the status."""

    code = "wrong_status"


class StaleAttempt(RefusedError):
    """The attempt is gone: it was reclaimed, cancelled or finished."""

    code = "stale_attempt"


class ResourceLocked(RefusedError):
    """Another job holds the resource; `detail` is its id."""

    code = "resource_locked"


class Draining(RefusedError):
    """The system is draining and accepts no new jobs from outside."""

    code = "draining"


class WorkerLost(RefusedError):
    """The worker is not registered, or its lease is over."""

    code = "worker_lost"


class WrongIsolation(RefusedError):
    """Claims need READ COMMITTED."""

    code = "wrong_isolation"


class MalformedId(RefusedError):
    """Not a public id: a wrong symbol, length or check symbol."""

    code = "invalid_id"


class InvalidLane(RefusedError):
    """A lane's setting breaks a rule, or the lane exists already."""

    code = "invalid_lane"


class LaneInUse(RefusedError):
    """The lane still has unfinished jobs, or is the default one."""

    code = "lane_in_use"


class EmptyGroup(RefusedError):
    """The group that should be waited for has no jobs."""

    code = "empty_group"


class StepMismatch(RefusedError):
    """The step was done before with other arguments: its name is used for two things."""

    code = "step_mismatch"


class LockCycle(RefusedError):
    """Jobs wait for each other's locks; `detail` is the job that holds the lock in question."""

    code = "lock_cycle"


class Limited(RefusedError):
    """The tenant has as many unfinished jobs as an operator allows; `detail` is the tenant."""

    code = "limited"


class UnknownSchedule(RefusedError):
    """The schedule does not exist."""

    code = "unknown_schedule"


class InvalidSchedule(RefusedError):
    """A schedule's setting breaks a rule, or the schedule exists already."""

    code = "invalid_schedule"


class UnknownRole(RefusedError):
    """There is no such role."""

    code = "unknown_role"


class UnknownToken(RefusedError):
    """There is no such token."""

    code = "unknown_token"


class InvalidAccess(RefusedError):
    """A setting of a token or a role breaks a rule."""

    code = "invalid_access"


class NotYours(RefusedError):
    """Permissions, or tokens in a tenant, that the one who asks may not hand out."""

    code = "not_yours"


class AlreadyExists(RefusedError):
    """Something of that name is there already."""

    code = "already_exists"


class RoleInUse(RefusedError):
    """The role is built in, or valid tokens have it."""

    code = "role_in_use"


class UnknownRunner(RefusedError):
    """There is no such runner, or it is somebody else's."""

    code = "unknown_runner"


class ForeignAttempt(RefusedError):
    """The attempt belongs to a worker, or to a runner of another token."""

    code = "foreign_attempt"


class LaneExists(InvalidLane):
    """A lane of that name is there already."""

    code = "lane_exists"


class ArgsErased(RefusedError):
    """The job's args were erased, so it cannot be run again."""

    code = "args_erased"


class UnknownTrigger(RefusedError):
    """There is no such incoming webhook."""

    code = "unknown_trigger"


class InvalidTrigger(RefusedError):
    """A setting of an incoming webhook breaks a rule, or a body does not fit it."""

    code = "invalid_trigger"


class Replayed(RefusedError):
    """The very same signed request has been accepted before."""

    code = "replayed"


class UnknownHook(RefusedError):
    """There is no such outgoing webhook."""

    code = "unknown_hook"


class InvalidHook(RefusedError):
    """A setting of an outgoing webhook breaks a rule."""

    code = "invalid_hook"


#: SQLSTATE → exception. The one place where the two meet.
SQLSTATES: dict[str, type[RefusedError]] = {
    "FL001": UnknownLane,
    "FL002": InvalidName,
    "FL003": InvalidPriority,
    "FL004": InvalidMaxAttempts,
    "FL005": TooLarge,
    "FL006": InvalidJson,
    "FL007": InvalidOption,
    "FL008": MissingDependency,
    "FL009": DependencyCycle,
    "FL010": NotFound,
    "FL011": WrongStatus,
    "FL012": StaleAttempt,
    "FL013": ResourceLocked,
    "FL014": Draining,
    "FL015": WorkerLost,
    "FL016": WrongIsolation,
    "FL017": MalformedId,
    "FL018": InvalidLane,
    "FL019": LaneInUse,
    "FL020": EmptyGroup,
    "FL021": StepMismatch,
    "FL022": LockCycle,
    "FL023": Limited,
    "FL030": UnknownSchedule,
    "FL031": InvalidSchedule,
    "FL040": UnknownRole,
    "FL041": UnknownToken,
    "FL042": InvalidAccess,
    "FL043": NotYours,
    "FL044": AlreadyExists,
    "FL045": RoleInUse,
    "FL046": LaneExists,
    "FL047": UnknownTrigger,
    "FL048": InvalidTrigger,
    "FL049": Replayed,
    "FL055": ArgsErased,
    "FL060": UnknownHook,
    "FL061": InvalidHook,
    "FL065": UnknownRunner,
    "FL066": ForeignAttempt,
}


def refused_as(code: str, message: str, detail: str | None = None) -> RefusedError:
    """The exception for a code that came from another process or over HTTP."""
    kind = next((kind for kind in SQLSTATES.values() if kind.code == code), RefusedError)
    return kind(message, detail=detail)


def refusal(error: BaseException) -> RefusedError | None:
    """The exception for a driver's error, or None when it is not one of ours.

    Every driver carries the SQLSTATE somewhere: asyncpg and psycopg as `sqlstate`, psycopg2 as `pgcode`; SQLAlchemy and
    Django wrap theirs.
    """
    seen: BaseException | None = error
    while seen is not None:
        state = getattr(seen, "sqlstate", None) or getattr(seen, "pgcode", None)
        if isinstance(state, str) and state in SQLSTATES:
            # A wrapper may repeat the state but not the rest: the driver's own error is below it.
            while isinstance(seen.__cause__, Exception) and getattr(seen.__cause__, "sqlstate", None) == state:
                seen = seen.__cause__
            diagnostics = getattr(seen, "diag", None)
            message = getattr(seen, "message", None) or getattr(diagnostics, "message_primary", None) or str(seen)
            detail = getattr(seen, "detail", None) or getattr(diagnostics, "message_detail", None)
            hint = getattr(seen, "hint", None) or getattr(diagnostics, "message_hint", None)
            return SQLSTATES[state](message, detail=detail, hint=hint)
        if isinstance(state, str) and state.startswith("22"):  # data exceptions: a zero character in a name, say
            return InvalidOption(f"a value cannot be sent to the database: {seen}")
        seen = getattr(seen, "orig", None) or seen.__cause__
    return None


class InvalidArgs(FencelineError):
    """Args do not fit the handler's signature; nothing was enqueued."""

    code = "invalid_args"


class InvalidResult(FencelineError):
    """A stored result does not fit the type that the handler declares."""

    code = "invalid_result"


class DatabaseUnavailable(FencelineError):
    """No connection could be made; nothing was sent."""


class ConnectionLost(FencelineError):
    """The connection broke while a statement was under way: it may or may not have been carried out."""


class JobNotSuccessful(FencelineError):
    """The job whose result was awaited ended without one; `error` is what the queue keeps of it."""

    def __init__(self, message: str, *, error: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.error = error


class JobFailed(JobNotSuccessful):
    """The job failed for good."""


class JobCancelled(JobNotSuccessful):
    """The job was cancelled, rejected or expired."""


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


class Unsupported(FencelineError):
    """Not possible where this handler runs."""
