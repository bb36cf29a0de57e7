"""How a handler's return value becomes the end of its attempt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fenceline.client.arguments import to_json
from fenceline.context.attempt import Attempt, Ending
from fenceline.errors import InvalidResult
from fenceline.model.with_errors import WithErrors

if TYPE_CHECKING:
    from fenceline.context.context import Context

Encode = Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class End:
    """Outcome, result and errors; the latter two as JSON text."""

    outcome: str
    result: str | None
    errors: str | None


def encode_end(context: "Context", value: Any, encode: Encode, errors: Sequence[Any] | None = None) -> End:
    """What a handler returned, with the errors that it collected on the way. Raises InvalidResult."""
    collected = [*(errors or ()), *context.collected_errors]
    if isinstance(value, WithErrors):
        collected = [*value.errors, *collected]
        value = value.value
    result = context.redact(encode(value))
    if not collected:
        return End("succeeded", result, None)
    try:
        return End("succeeded_with_errors", result, context.redact(to_json(collected)))
    except ValueError as error:
        raise InvalidResult(f"the errors of kind {context.kind!r} cannot be written as JSON: {error}") from error


def ending_with(attempt: Attempt, context: "Context", value: Any, encode: Encode) -> Ending:
    """The ending of an attempt whose handler returned this value."""
    if type(value) is not WithErrors and not context.collected_errors:  # nearly all
        return Ending(attempt, result=context.redact(encode(value)))
    end = encode_end(context, value, encode)
    return Ending(attempt, outcome=end.outcome, result=end.result, errors=end.errors)
