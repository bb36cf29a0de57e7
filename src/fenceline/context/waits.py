"""Durable waits: a handler that waits ends its attempt and gives its slot back. When the wait is over, the handler runs
again from its beginning and passes the wait as it passes a finished step.
"""

import os
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from fenceline.errors import MAX_SECONDS, InvalidOption, StepMismatch, Suspended
from fenceline.model.secret import hash_token

if TYPE_CHECKING:
    from fenceline.context.session import Session

#: How a wait can have ended.
ENDS = frozenset({"signal", "timeout", "slept"})
#: How long a callback is valid by default: a week.
CALLBACK_SECONDS = 7 * 24 * 3600.0
#: The address at which others reach the server.
PUBLIC_URL = "FENCELINE_PUBLIC_URL"


def seconds_of(what: str, given: float | timedelta) -> float:
    """Raises InvalidOption."""
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if not 0 <= seconds <= MAX_SECONDS:
        raise InvalidOption(f"{what} of {seconds} seconds is out of range: use 0 to {MAX_SECONDS}")
    return seconds


def sleep_seconds(seconds: float | timedelta, minutes: float, hours: float, days: float) -> float:
    """Raises InvalidOption."""
    more = timedelta(minutes=minutes, hours=hours, days=days).total_seconds()
    return seconds_of("a sleep", seconds) + seconds_of("a sleep", more)


async def begin(session: "Session", name: str, signal: str | None, seconds: float | None) -> dict[str, Any]:
    """The answer to the next wait of this name, for `conclude`. Raises InvalidOption, StepMismatch."""
    session.check(starts_work=True)
    if session.transaction_open is not None:
        raise InvalidOption("a handler cannot wait inside ctx.transaction(): what it has written would be rolled back")
    step, kept = session.steps.next(name)
    if kept is None:
        answer: dict[str, Any] = await session.execute(
            "begin_wait", {"step": step, "signal": signal, "seconds": seconds}, starts_work=True
        )
        return answer
    if kept["args_hash"] not in ENDS:
        raise StepMismatch(f"step {step!r} was done before and was no wait: give steps other names than waits have")
    return {"ended": kept["args_hash"], "payload": kept["result"]}


def conclude(answer: dict[str, Any], signal: str | None, seconds: float | None) -> Any:
    """The payload of the signal. Raises TimeoutError, and Suspended while the wait goes on."""
    if answer["ended"] is None:
        raise Suspended
    if answer["ended"] == "timeout":
        raise TimeoutError(f"signal {signal!r} did not come within {seconds:g} seconds")
    return answer["payload"]


async def callback_url(session: "Session", signal: str, expires_in: float | timedelta) -> str:
    """A URL that sends one signal. Raises InvalidOption."""
    base = os.environ.get(PUBLIC_URL) or os.environ.get("FENCELINE_URL")
    if not base:
        raise InvalidOption(f"where the server is reached is not known: set {PUBLIC_URL}=https://queue.example.com")
    secret = secrets.token_urlsafe(32)
    values = {"signal": signal, "hash": hash_token(secret).hex(), "seconds": seconds_of("a callback", expires_in)}
    await session.execute("create_callback", values, starts_work=True)
    return f"{base.rstrip('/')}/v1/callbacks/{secret}"
