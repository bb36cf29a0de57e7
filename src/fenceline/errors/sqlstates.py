"""The refusals of the state machine: SQLSTATE → exception, once."""

from collections.abc import Mapping
from typing import Any

from fenceline import errors
from fenceline.errors import RefusedError

#: SQLSTATE → exception. The one place where the two meet.
SQLSTATES: dict[str, type[RefusedError]] = {
    "FL001": errors.UnknownLane,
    "FL002": errors.InvalidName,
    "FL003": errors.InvalidPriority,
    "FL004": errors.InvalidMaxAttempts,
    "FL005": errors.TooLarge,
    "FL006": errors.InvalidJson,
    "FL007": errors.InvalidOption,
    "FL008": errors.MissingDependency,
    "FL009": errors.DependencyCycle,
    "FL010": errors.NotFound,
    "FL011": errors.WrongStatus,
    "FL012": errors.StaleAttempt,
    "FL013": errors.ResourceLocked,
    "FL014": errors.Draining,
    "FL015": errors.WorkerLost,
    "FL016": errors.WrongIsolation,
    "FL017": errors.MalformedId,
    "FL018": errors.InvalidLane,
    "FL019": errors.LaneInUse,
    "FL020": errors.EmptyGroup,
    "FL021": errors.StepMismatch,
    "FL022": errors.LockCycle,
    "FL023": errors.Limited,
    "FL030": errors.UnknownSchedule,
    "FL031": errors.InvalidSchedule,
    "FL040": errors.UnknownRole,
    "FL041": errors.UnknownToken,
    "FL042": errors.InvalidAccess,
    "FL043": errors.NotYours,
    "FL044": errors.AlreadyExists,
    "FL045": errors.RoleInUse,
    "FL046": errors.LaneExists,
    "FL047": errors.UnknownTrigger,
    "FL048": errors.InvalidTrigger,
    "FL049": errors.Replayed,
    "FL055": errors.ArgsErased,
    "FL060": errors.UnknownHook,
    "FL061": errors.InvalidHook,
    "FL065": errors.UnknownRunner,
    "FL066": errors.ForeignAttempt,
    "FL070": errors.OwnApproval,
    "FL071": errors.IdentityRefused,
    "FL072": errors.KeyTaken,
    "FL073": errors.IdempotencyMismatch,
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
            return errors.InvalidOption(f"a value cannot be sent to the database: {seen}")
        seen = getattr(seen, "orig", None) or seen.__cause__
    return None
