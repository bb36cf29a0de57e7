"""How answers are read: rows of a driver, and JSON as records of `model/`, whether it came by SQL or by HTTP."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
# Whatever the driver's rows are: they are read by position, and unpacked.
Row = Any


# What most answers are: nothing, one value, one value a row.


def nothing(_rows: Sequence[Row]) -> None:
    return None


def scalar(rows: Sequence[Row]) -> Any:
    return rows[0][0]


def column(rows: Sequence[Row]) -> list[Any]:
    return [row[0] for row in rows]


def from_json(value: Any) -> Any:
    # asyncpg hands JSON over as text, psycopg as objects.
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except ValueError:  # Python refuses integers of more than 4300 digits, which other languages may have stored
        return json.loads(value, parse_int=_any_integer)


def _any_integer(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


def json_value(rows: Sequence[Row]) -> Any:
    return from_json(scalar(rows))


def json_values(rows: Sequence[Row]) -> list[Any]:
    return [from_json(row[0]) for row in rows]


# Records: one frozen dataclass each, with the names and types of the JSON.


def read_record(kind: type[T], value: Any) -> T:
    """A record from JSON. Fields that only a newer schema or server knows are left out."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]  # a class is hashable
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        # Errors, progress and the like are written by programs in any language, and a server cuts long ones: a value of
        # an unusual type is shown as it is, rather than nothing at all.
        odd = {name: value[name] for name in {str(detail["loc"][0]) for detail in error.errors()} & value.keys()}
        usual = adapter.validate_python(value | dict.fromkeys(odd))
        return replace(usual, **odd)  # type: ignore[type-var]  # every record is a dataclass


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def record(kind: type[T]) -> Callable[[Sequence[Row]], T]:
    """Decodes the JSON of one."""
    return lambda rows: read_record(kind, json_value(rows))


def records(kind: type[T]) -> Callable[[Sequence[Row]], list[T]]:
    """Decodes one of each row's JSON."""
    return lambda rows: [read_record(kind, value) for value in json_values(rows)]


def tuples(kind: Callable[..., T]) -> Callable[[Sequence[Row]], list[T]]:
    """Decodes one of each row, from its columns in their order."""
    return lambda rows: [kind(*row) for row in rows]
