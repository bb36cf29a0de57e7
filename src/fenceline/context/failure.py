"""What an exception of a handler means for its attempt, and what the queue keeps of it."""

import json
import traceback
from typing import Any

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.preparation import CredentialsMissing, PlanHashMismatch
from fenceline.context.secrets import redact
from fenceline.errors import (
    Cancel,
    Cancelled,
    Fail,
    InvalidArgs,
    InvalidResult,
    RefusedError,
    RetryLater,
    Snooze,
    StepMismatch,
    Superseded,
    TooLarge,
)
from fenceline.model.json_text import stored_json

MAX_TRACEBACK = 8_000
MAX_MESSAGE = 2_000


def message_of(error: BaseException) -> str:
    """What an exception says, even where saying it fails: that must not cost more than the attempt."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - `__str__` is code of the handler's, and raises what it likes
        return f"{type(error).__qualname__}, whose text cannot be had: {type(failure).__qualname__}"


def describe(error: BaseException, *, code: str = "error") -> str:
    """JSON text with code, message, type and traceback."""
    # Before they are cut: half a secret is one too.
    text = redact("".join(traceback.format_exception(error)))
    message = redact(message_of(error)) or type(error).__name__
    described: dict[str, Any] = {
        "code": code,
        "message": message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…",
        "type": type(error).__qualname__,
        "traceback": text if len(text) <= MAX_TRACEBACK else "…" + text[-MAX_TRACEBACK:],
    }
    return stored_json(described)


def has_type(described: str | None, error: type[BaseException]) -> bool:
    """Whether this is the description of such an exception."""
    return described is not None and json.loads(described).get("type") == error.__qualname__


def ending_of(attempt: Attempt, error: BaseException, ran_seconds: float | None = None) -> Ending:
    """How an attempt ends whose handler raised this."""
    try:
        return _ending_of(attempt, error, ran_seconds)
    except Exception as failure:  # noqa: BLE001 - a class of the handler's own, which lacks what ours have
        return Ending(attempt, outcome="failed", error=describe(failure), ran_seconds=ran_seconds)


def _ending_of(attempt: Attempt, error: BaseException, ran_seconds: float | None) -> Ending:
    code, delay = "error", None
    match error:
        case Snooze():
            return Ending(attempt, outcome="snoozed", delay=error.seconds, ran_seconds=ran_seconds)
        case RetryLater():
            outcome, delay = "failed", error.after
        case Fail():
            outcome = "failed_for_good"
        case Cancel() | Cancelled():
            outcome, code = "cancelled", "cancelled"
        case Superseded():
            outcome, code = "cancelled", "superseded"
        case InvalidArgs() | InvalidResult() | PlanHashMismatch() | StepMismatch() | TooLarge():
            # The same again will not fit better the next time.
            outcome, code = "failed_for_good", error.code
        case RefusedError() | CredentialsMissing():
            outcome, code = "failed", error.code
        case _:
            outcome = "failed"
    return Ending(attempt, outcome=outcome, error=describe(error, code=code), delay=delay, ran_seconds=ran_seconds)


def timed_out(attempt: Attempt, ran_seconds: float | None = None) -> Ending:
    message = f"the handler ran longer than its timeout of {attempt.timeout_seconds} seconds"
    error = describe(TimeoutError(message), code="timeout")
    return Ending(attempt, outcome="failed", error=error, ran_seconds=ran_seconds)
