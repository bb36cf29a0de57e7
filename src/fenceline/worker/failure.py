"""What an exception of a handler means for its attempt, and what the queue keeps of it."""

import traceback
from typing import Any

from fenceline.errors import Cancel, Cancelled, Fail, InvalidArgs, InvalidResult, RetryLater, Snooze
from fenceline.model.json_text import stored_json
from fenceline.worker.attempt import Attempt, Ending

MAX_TRACEBACK = 8_000
MAX_MESSAGE = 2_000


def describe(error: BaseException, *, code: str = "error") -> str:
    """JSON text with code, message, type and traceback."""
    text = "".join(traceback.format_exception(error))
    message = str(error) or type(error).__name__
    described: dict[str, Any] = {
        "code": code,
        "message": message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…",
        "type": type(error).__qualname__,
        "traceback": text if len(text) <= MAX_TRACEBACK else "…" + text[-MAX_TRACEBACK:],
    }
    return stored_json(described)


def ending_of(attempt: Attempt, error: BaseException, ran_seconds: float | None = None) -> Ending:
    """How an attempt ends whose handler raised this."""
    match error:
        case Snooze():
            return Ending(attempt, outcome="snoozed", delay=error.seconds, ran_seconds=ran_seconds)
        case RetryLater():
            return Ending(attempt, outcome="failed", delay=error.after, error=describe(error), ran_seconds=ran_seconds)
        case Fail():
            return Ending(attempt, outcome="failed_for_good", error=describe(error), ran_seconds=ran_seconds)
        case Cancel() | Cancelled():
            return Ending(
                attempt, outcome="cancelled", error=describe(error, code="cancelled"), ran_seconds=ran_seconds
            )
        case InvalidArgs() | InvalidResult():
            # The same args will not fit better the next time.
            return Ending(
                attempt, outcome="failed_for_good", error=describe(error, code=error.code), ran_seconds=ran_seconds
            )
        case _:
            return Ending(attempt, outcome="failed", error=describe(error), ran_seconds=ran_seconds)


def timed_out(attempt: Attempt, ran_seconds: float | None = None) -> Ending:
    message = f"the handler ran longer than its timeout of {attempt.timeout_seconds} seconds"
    error = describe(TimeoutError(message), code="timeout")
    return Ending(attempt, outcome="failed", error=error, ran_seconds=ran_seconds)
