"""The refusals of the state machine: SQLSTATE → exception, once."""

from collections.abc import Mapping
from typing import Any

from fenceline.errors.access import AlreadyExists, InvalidAccess, NotYours, RoleInUse, UnknownRole, UnknownToken
from fenceline.errors.attempts import ForeignAttempt, LockCycle, StaleAttempt, StepMismatch, UnknownRunner, WorkerLost
from fenceline.errors.base import RefusedError
from fenceline.errors.connection import WrongIsolation
from fenceline.errors.enqueue import (
    DependencyCycle,
    Draining,
    EmptyGroup,
    IdempotencyMismatch,
    IdentityRefused,
    InvalidJson,
    InvalidMaxAttempts,
    InvalidName,
    InvalidOption,
    InvalidPriority,
    KeyTaken,
    Limited,
    MissingDependency,
    ResourceLocked,
    TooLarge,
)
from fenceline.errors.jobs import ArgsErased, MalformedId, NotFound, OwnApproval, WrongStatus
from fenceline.errors.operations import (
    InvalidLane,
    InvalidSchedule,
    LaneExists,
    LaneInUse,
    UnknownLane,
    UnknownSchedule,
)
from fenceline.errors.webhooks import InvalidHook, InvalidTrigger, Replayed, UnknownHook, UnknownTrigger

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
    "FL070": OwnApproval,
    "FL071": IdentityRefused,
    "FL072": KeyTaken,
    "FL073": IdempotencyMismatch,
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
            return InvalidOption(f"a value cannot be sent to the database: {seen}")
        seen = getattr(seen, "orig", None) or seen.__cause__
    return None
