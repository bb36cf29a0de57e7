"""The refusals of the state machine: SQLSTATE → exception, once."""

from collections.abc import Mapping
from typing import Any

from fenceline.errors import access, attempts, connection, enqueue, jobs, operations, webhooks
from fenceline.errors.base import RefusedError

#: SQLSTATE → exception. The one place where the two meet.
SQLSTATES: dict[str, type[RefusedError]] = {
    "FL001": operations.UnknownLane,
    "FL002": enqueue.InvalidName,
    "FL003": enqueue.InvalidPriority,
    "FL004": enqueue.InvalidMaxAttempts,
    "FL005": enqueue.TooLarge,
    "FL006": enqueue.InvalidJson,
    "FL007": enqueue.InvalidOption,
    "FL008": enqueue.MissingDependency,
    "FL009": enqueue.DependencyCycle,
    "FL010": jobs.NotFound,
    "FL011": jobs.WrongStatus,
    "FL012": attempts.StaleAttempt,
    "FL013": enqueue.ResourceLocked,
    "FL014": enqueue.Draining,
    "FL015": attempts.WorkerLost,
    "FL016": connection.WrongIsolation,
    "FL017": jobs.MalformedId,
    "FL018": operations.InvalidLane,
    "FL019": operations.LaneInUse,
    "FL020": enqueue.EmptyGroup,
    "FL021": attempts.StepMismatch,
    "FL022": attempts.LockCycle,
    "FL023": enqueue.Limited,
    "FL030": operations.UnknownSchedule,
    "FL031": operations.InvalidSchedule,
    "FL040": access.UnknownRole,
    "FL041": access.UnknownToken,
    "FL042": access.InvalidAccess,
    "FL043": access.NotYours,
    "FL044": access.AlreadyExists,
    "FL045": access.RoleInUse,
    "FL046": operations.LaneExists,
    "FL047": webhooks.UnknownTrigger,
    "FL048": webhooks.InvalidTrigger,
    "FL049": webhooks.Replayed,
    "FL055": jobs.ArgsErased,
    "FL060": webhooks.UnknownHook,
    "FL061": webhooks.InvalidHook,
    "FL065": attempts.UnknownRunner,
    "FL066": attempts.ForeignAttempt,
    "FL070": jobs.OwnApproval,
    "FL071": enqueue.IdentityRefused,
    "FL072": enqueue.KeyTaken,
    "FL073": enqueue.IdempotencyMismatch,
}


def refused_as(code: str, message: str, detail: str | None = None) -> RefusedError:
    """The exception for a code that came from another process or over HTTP."""
    kind = next((kind for kind in SQLSTATES.values() if kind.code == code), RefusedError)
    return kind(message, detail=detail)


def refused_over_http(problem: Mapping[str, Any]) -> RefusedError:
    """The exception for an answer of the server (RFC 9457): `reason` says more than `code` where it is there."""
    code, detail = str(problem.get("reason") or problem.get("code")), str(problem.get("detail") or problem.get("title"))
    return refused_as(code, detail, problem.get("holder") or problem.get("job_status"))


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
            return enqueue.InvalidOption(f"a value cannot be sent to the database: {seen}")
        seen = getattr(seen, "orig", None) or seen.__cause__
    return None
