"""An operation of the state machine as a value: SQL text, parameters, and how to read the answer.

A `Call` knows nothing of drivers and does no I/O, so the async client, its sync twin, workers and a caller's own
connection all run the same ones. `calls/` has all of them, by noun.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from fenceline.database.decoding import Row, column, records, scalar, tuples
from fenceline.model.sealed import Seal

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One statement. Parameters are `$1`, `$2` … in `sql`; `repeatable` says that running it twice is harmless.

    `seals`: how parameters are encrypted where there is a codec (`sealing.with_codec`), by their place from 0.
    `opens`: whether the answer is decrypted there. `makes_jobs`: afterwards there may be messages to send.
    """

    sql: str
    parameters: tuple[Any, ...]
    decode: Callable[[Sequence[Row]], T_co]
    repeatable: bool = False
    seals: Mapping[int, Seal] = field(default_factory=dict)
    opens: bool = True
    makes_jobs: bool = False


class RunCall(Protocol):
    """Whatever runs calls: a client's pool, a worker's connection."""

    def __call__(self, call: Call[T], /) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the schema and its arguments; in a statement `fenceline.name(p_x => $1, p_y => $2)`."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class As:
    """A value that the statement casts: not every driver knows what a function wants. `seal`: see `Call.seals`."""

    type: str
    value: Any
    seal: Seal | None = None


class Sql(str):
    """Not a value but SQL, which stands in the statement as it is."""

    __slots__ = ()


def function(name: str, given: Mapping[str, Any] | None = None, /, **arguments: Any) -> Function:
    """`given`: the `locals()` of a call that has the parameters of the function; `arguments` override them.

    Who asks (`viewer`) is not an argument: calls pass what they need of it.
    """
    if given is not None:
        arguments = {**given, **arguments}
        arguments.pop("viewer", None)
    return Function(name, arguments)


def jsonb(value: Any) -> As:
    """A value as JSON; None: null."""
    return As("jsonb", None if value is None else json.dumps(value, default=dict))


def statement(
    template: str,
    *pieces: Any,
    decode: Callable[[Sequence[Row]], T],
    repeatable: bool = False,
    opens: bool = True,
    makes_jobs: bool = False,
) -> Call[T]:
    """A call from SQL with a `{}` for each piece: a function, SQL, or a value, which becomes a parameter."""
    parameters: list[Any] = []
    seals: dict[int, Seal] = {}

    def place(piece: Any) -> str:
        # Neither `match` nor isinstance: this runs for every parameter of every call, and takes half as long.
        kind = type(piece)
        if kind is Function:
            arguments = [f"p_{name} => {place(value)}" for name, value in piece.arguments.items()]
            return f"fenceline.{piece.name}({', '.join(arguments)})"
        if kind is As:
            if piece.seal is not None:
                seals[len(parameters)] = piece.seal
            return f"cast({place(piece.value)} as {piece.type})"
        if kind is Sql:
            return str(piece)
        # An array: psycopg would send a tuple as a row.
        parameters.append(list(piece) if kind is tuple else piece)
        return f"${len(parameters)}"

    sql = template.format(*[place(piece) for piece in pieces])
    return Call(sql, tuple(parameters), decode, repeatable, seals, opens, makes_jobs)


def value_of(called: Function, decode: Callable[[Sequence[Row]], T] = scalar, *, repeatable: bool = False) -> Call[T]:
    """The one value that a function gives."""
    return statement("select {}", called, decode=decode, repeatable=repeatable)


def rows_of(
    called: Function,
    columns: str,
    decode: Callable[[Sequence[Row]], T],
    *,
    repeatable: bool = False,
    makes_jobs: bool = False,
) -> Call[T]:
    """Columns of the rows that a function gives; the whole row is `r`."""
    pieces = (Sql(columns), called)
    return statement("select {} from {} r", *pieces, decode=decode, repeatable=repeatable, makes_jobs=makes_jobs)


def records_of(kind: type[T], called: Function, columns: str = "to_jsonb(r)") -> Call[list[T]]:
    """A record for each row that a function gives."""
    return rows_of(called, columns, records(kind), repeatable=True)


def tuples_of(kind: type[T], called: Function) -> Call[list[T]]:
    """The same for a dataclass whose fields are named as columns: without JSON, for what is read often."""
    return rows_of(called, _columns(kind), tuples(kind), repeatable=True)  # type: ignore[arg-type]  # a class is hashable


@cache
def _columns(kind: Any) -> str:
    return ", ".join(each.name for each in fields(kind))


def text_of(call: Call[Any]) -> Call[str]:
    """For a call that answers with JSON: the text of it, to be passed on as it is."""
    return replace(call, decode=scalar)


#: A page ends before the row that would make it longer than this, but always has at least one.
PAGE_BYTES = 4 * 2**20
_PAGE = """
select p.item, p.rows
from (select q.item, row_number() over () as place, count(*) over () as rows,
             sum(octet_length(q.item::text)) over (rows unbounded preceding) as bytes
      from (select * from ({call}) r(item) offset ${skip}) q) p
where p.place = 1 or p.bytes <= ${most}
"""


def page_of(call: Call[list[Any]], skip: int = 0) -> Call[tuple[list[str], int | None]]:
    """For a call whose rows are one JSON value each: their texts after the first `skip`, as many as fit on a page, and
    how many to skip for the next page, or None if this is the last.
    """
    place = len(call.parameters)

    def decode(rows: Sequence[Row]) -> tuple[list[str], int | None]:
        return [row[0] for row in rows], skip + len(rows) if rows and len(rows) < rows[0][1] else None

    sql = _PAGE.format(call=call.sql, skip=place + 1, most=place + 2)
    parameters = (*call.parameters, skip, PAGE_BYTES)
    return Call(sql, parameters, decode, repeatable=call.repeatable, seals=call.seals, opens=call.opens)


def texts_of(call: Call[list[Any]]) -> Call[list[str]]:
    """For a call with one JSON value per row: their texts."""
    return replace(call, decode=column)
