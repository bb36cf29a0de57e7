"""What an exception of a handler means for its attempt, and what the queue keeps of it."""

import json
import logging
import traceback
from typing import Any

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.preparation import CredentialsMissing, PlanHashMismatch
from fenceline.context.redaction import has_secrets, redact
from fenceline.context.user_frames import strip
from fenceline.errors import (
    Cancel,
    Cancelled,
    Fail,
    InvalidArgs,
    InvalidResult,
    RefusedError,
    RetryLater,
    Sealed,
    Snooze,
    StepMismatch,
    Superseded,
    Suspended,
    TooLarge,
)
from fenceline.model.json_text import stored_json
from fenceline.model.outcome import Outcome

MAX_TRACEBACK = 8_000
MAX_MESSAGE = 2_000
#: How long a job waits that this worker cannot read: for one that has the key.
SEALED_SECONDS = 30.0

log = logging.getLogger("fenceline.worker")


class HandlerFailure(Exception):
    """A failure whose exception is not at hand: it was raised in another process, or may show credentials. Its text is
    the traceback as it is stored.
    """

    @classmethod
    def of(cls, described: dict[str, Any]) -> "HandlerFailure | None":
        """None: there is nothing to tell that the message does not."""
        text = described.get("traceback")
        return None if text is None else cls(text)


def message_of(error: BaseException) -> str:
    """What an exception says, even where saying it fails: that must not cost more than the attempt."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - `__str__` is code of the handler's, and raises what it likes
        return f"{type(error).__qualname__}, whose text cannot be had: {type(failure).__qualname__}"


def describe(error: BaseException, *, code: str = "error") -> str:
    """JSON text with code, message, type and, unless its class `is_brief`, traceback."""
    strip(error)
    # Before they are cut: half a secret is one too.
    text = "" if getattr(error, "is_brief", False) else redact("".join(traceback.format_exception(error)))
    message = redact(message_of(error)) or type(error).__name__
    described: dict[str, Any] = {
        "code": code,
        "message": message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…",
        "type": type(error).__qualname__,
    }
    if text:
        described["traceback"] = text if len(text) <= MAX_TRACEBACK else "…" + text[-MAX_TRACEBACK:]
    return stored_json(described)


def has_type(described: str | None, error: type[BaseException]) -> bool:
    """Whether this is the description of such an exception."""
    return described is not None and json.loads(described).get("type") == error.__qualname__


def ending_of(attempt: Attempt, error: BaseException, ran_seconds: float | None = None) -> Ending:
    """How an attempt ends whose handler raised this."""
    if _is_suspended(error):
        return Ending(attempt, outcome=Outcome.WAITING, ran_seconds=ran_seconds)
    try:
        return _ending_of(attempt, error, ran_seconds)
    except Exception as failure:  # noqa: BLE001 - a class of the handler's own, which lacks what ours have
        return Ending(attempt, outcome=Outcome.FAILED, error=describe(failure), ran_seconds=ran_seconds, cause=failure)


def _is_suspended(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):  # of a TaskGroup: did anything else go wrong in it?
        return error.split(Suspended)[1] is None
    return isinstance(error, Suspended)


def _ending_of(attempt: Attempt, error: BaseException, ran_seconds: float | None) -> Ending:
    code, delay = "error", None
    match error:
        case Snooze():
            return Ending(attempt, outcome=Outcome.SNOOZED, delay=error.seconds, ran_seconds=ran_seconds)
        case Sealed():
            # Not the job's fault: it costs no attempt.
            log.error("job %s goes back to the queue: %s", attempt.id, error)
            return Ending(attempt, outcome=Outcome.SNOOZED, delay=SEALED_SECONDS, ran_seconds=ran_seconds)
        case RetryLater():
            outcome, delay = Outcome.FAILED, error.after
        case Fail():
            outcome, code = Outcome.FAILED_FOR_GOOD, str(getattr(error, "code", code))
        case Cancel() | Cancelled():
            outcome, code = Outcome.CANCELLED, "cancelled"
        case Superseded():
            outcome, code = Outcome.CANCELLED, "superseded"
        case InvalidArgs(of_claimed_job=True):
            outcome, code = Outcome.REFUSED, error.code
        case InvalidArgs() | InvalidResult() | PlanHashMismatch() | StepMismatch() | TooLarge():
            # The same again will not fit better the next time.
            outcome, code = Outcome.FAILED_FOR_GOOD, error.code
        case RefusedError() | CredentialsMissing():
            outcome, code = Outcome.FAILED, error.code
        case _:
            outcome = Outcome.FAILED
    described = describe(error, code=code)
    return Ending(
        attempt,
        outcome=outcome,
        error=described,
        delay=delay,
        ran_seconds=ran_seconds,
        cause=error,
        is_loggable=_is_loggable(error),
    )


def _is_loggable(error: BaseException) -> bool:
    """To whoever collects exceptions: they look at the variables of frames, too, and write the text somewhere."""
    if has_secrets() or getattr(error, "is_brief", False):
        return False
    try:
        message_of(error).encode()
    except UnicodeEncodeError:
        return False
    return True


def timed_out(attempt: Attempt, ran_seconds: float | None = None) -> Ending:
    message = f"the handler ran longer than its timeout of {attempt.timeout_seconds} seconds"
    error = TimeoutError(message)
    described = describe(error, code="timeout")
    return Ending(attempt, outcome=Outcome.FAILED, error=described, ran_seconds=ran_seconds, cause=error)
