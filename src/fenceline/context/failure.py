"""What a handler's exception means for its attempt, and what the queue stores of it."""

import asyncio
import json
import logging
import traceback
from pathlib import Path
from typing import Any

from fenceline.context.attempt import Attempt, Ending
from fenceline.context.preparation import CredentialsMissing, PlanHashMismatch
from fenceline.context.redaction import has_secrets, redact
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
#: How long a job waits for another worker, if this one lacks the key to its args.
SEALED_SECONDS = 30.0

log = logging.getLogger("fenceline.worker")

_PACKAGE = Path(__file__).parents[1]
#: Where handlers are called from. What they call in turn comes later in the traceback, and stays.
_OURS = (
    *(f"{_PACKAGE / name}/" for name in ("client", "context", "delivery", "engine", "runtime", "worker")),
    f"{Path(asyncio.__file__).parent}/",
    "uvloop/",
)


class HandlerFailure(Exception):
    """Stands for an exception that was raised in another process, or that may show credentials. Its text is the stored
    traceback.
    """

    @classmethod
    def of(cls, described: dict[str, Any]) -> "HandlerFailure | None":
        """None if there is no more than the message."""
        text = described.get("traceback")
        return None if text is None else cls(text)


def message_of(error: BaseException) -> str:
    """The text of an exception, even if `str()` of it fails: that must not cost more than the attempt."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - `__str__` is code of the handler's, and raises what it likes
        return f"{type(error).__qualname__}, whose text cannot be had: {type(failure).__qualname__}"


def describe(error: BaseException, *, code: str = "error") -> str:
    """JSON text with code, message, type and, unless its class `is_brief`, traceback."""
    _strip(error)
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


def _strip(error: BaseException) -> None:
    """Let the traceback begin with the user's own code, not with the frames that call handlers."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    error.__traceback__ = frames


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
            # It would fail the same way the next time.
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
    """Whether collectors of exceptions may see it: they also look at local variables, and write the text somewhere."""
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
