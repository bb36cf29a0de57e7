"""How a handler's return value becomes the end of its attempt."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fenceline.client.arguments import to_json
from fenceline.context.attempt import Attempt, Ending
from fenceline.errors import InvalidResult
from fenceline.model.outcome import Outcome
from fenceline.model.with_errors import WithErrors

if TYPE_CHECKING:
    from fenceline.context.session import Session

Encode = Callable[[Any], str | None]


def ending_of_value(session: "Session", value: Any, encode: Encode, errors: Sequence[Any] | None = None) -> Ending:
    """How the attempt ends that returned this value, with the errors collected on the way. Raises InvalidResult."""
    collected = [*(errors or ()), *session.collected_errors]
    if isinstance(value, WithErrors):
        collected = [*value.errors, *collected]
        value = value.value
    result = session.redact(encode(value))
    if not collected:
        return Ending(session.attempt, result=result)
    try:
        text = session.redact(to_json(collected))
    except ValueError as error:
        raise InvalidResult(
            f"the errors of kind {session.attempt.kind!r} cannot be written as JSON: {error}"
        ) from error
    return Ending(session.attempt, Outcome.SUCCEEDED_WITH_ERRORS, result, errors=text)


def ending_with(
    attempt: Attempt, session: "Session", value: Any, encode: Encode, started: float | None = None
) -> Ending:
    """The ending of an attempt whose handler returned this value. It ran since `started` (`perf_counter`)."""
    if type(value) is not WithErrors and not session.collected_errors:  # nearly all
        return Ending(attempt, result=session.redact(encode(value)), ran_seconds=_since(started))
    return ending_of_value(session, value, encode)._replace(ran_seconds=_since(started))


def _since(started: float | None) -> float | None:
    return None if started is None else time.perf_counter() - started


def columns_of(endings: Sequence[Ending]) -> list[list[object] | None]:
    """For `finish_attempts`: one list per parameter; a parameter that nobody uses is not sent at all."""

    def column(values: list[object]) -> list[object] | None:
        return values if any(value is not None for value in values) else None

    return [
        [e.attempt.job_id for e in endings],
        [e.attempt.attempt_id for e in endings],
        [e.outcome for e in endings] if any(e.outcome != "succeeded" for e in endings) else None,
        column([e.result for e in endings]),
        column([e.error for e in endings]),
        column([e.errors for e in endings]),
        column([e.delay for e in endings]),
        column([e.ran_seconds for e in endings]),
    ]
