"""A call with a codec: what it sends is sealed, what comes back is opened."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from fenceline.database.call import Call
from fenceline.database.decoding import Row
from fenceline.model.sealed import Codec, open_value

T = TypeVar("T")


def with_codec(call: Call[T], codec: Codec | None) -> Call[T]:
    """The call itself where there is no codec."""
    if codec is None or not call.opens:
        return call
    parameters = list(call.parameters)
    for place, seal in call.seals.items():
        parameters[place] = seal(codec, parameters[place])

    def decode(rows: Sequence[Row]) -> T:
        return call.decode([tuple(open_value(codec, value) for value in row) for row in rows])

    return replace(call, parameters=tuple(parameters), decode=decode, seals={})
