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
    """The ending of an attempt that returned this value, with the errors collected on the way. Raises InvalidResult."""
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
    ran_seconds = None if started is None else time.perf_counter() - started
    if value is None and not session.collected_errors:  # nearly all
        return Ending(attempt, ran_seconds=ran_seconds)
    return ending_of_value(session, value, encode)._replace(ran_seconds=ran_seconds)


def columns_of(endings: Sequence[Ending]) -> list[list[object] | None]:
    """For `finish_attempts`: one list per parameter, or None for a parameter that no ending uses."""
    # The fields of an ending are in the order of the parameters. Whole columns at once, because every job passes here.
    attempts, outcomes, *values = list(zip(*endings, strict=True))[:7]
    return [
        [attempt.job_id for attempt in attempts],
        [attempt.attempt_id for attempt in attempts],
        list(outcomes) if outcomes.count(Outcome.SUCCEEDED) < len(outcomes) else None,
        *[list(column) if column.count(None) < len(column) else None for column in values],
    ]
