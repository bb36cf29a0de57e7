"""A call with a codec: what it sends is sealed, what comes back is opened.

Somebody who has a token from elsewhere, such as a backup, must not be able to open it by writing it where nothing is
sealed (a label, say) and reading it there: such a call is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from fenceline.database.call import Call
from fenceline.database.decoding import Row
from fenceline.errors import InvalidOption
from fenceline.model.sealed import Codec, holds_token, open_value

T = TypeVar("T")


def with_codec(call: Call[T], codec: Codec | None) -> Call[T]:
    """The call as it is if there is no codec. Raises InvalidOption for a value that is sealed already."""
    if codec is None or not call.opens:
        return call
    parameters = list(call.parameters)
    for place, value in enumerate(parameters):
        if place not in call.seals:
            _refuse_tokens(codec, value)
    for place, seal in call.seals.items():
        parameters[place] = seal(codec, parameters[place])

    def decode(rows: Sequence[Row]) -> T:
        return call.decode([tuple(open_value(codec, value) for value in row) for row in rows])

    return replace(call, parameters=tuple(parameters), decode=decode, seals={})


def _refuse_tokens(codec: Codec, value: Any) -> None:
    if isinstance(value, list | tuple):
        for each in value:
            _refuse_tokens(codec, each)
    elif isinstance(value, str) and holds_token(codec, value):
        raise InvalidOption("an encrypted value of this queue cannot be given: give what was encrypted")
