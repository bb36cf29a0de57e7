"""An operation of the state machine as a value: SQL text, parameters, and how to read the answer.

A `Call` knows nothing of drivers and does no I/O, so the async client, its sync twin, workers and a caller's own
connection all run the same ones. Those that there are stand in `calls/`, by noun.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from fenceline.database.decoding import Row, column, scalar
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


def function(name: str, /, **arguments: Any) -> Function:
    return Function(name, arguments)


def statement(
    template: str,
    *pieces: Any,
    decode: Callable[[Sequence[Row]], T],
    repeatable: bool = False,
    opens: bool = True,
) -> Call[T]:
    """A call from SQL with a `{}` for each piece: a function, SQL, or a value, which becomes a parameter."""
    parameters: list[Any] = []
    seals: dict[int, Seal] = {}

    def place(piece: Any) -> str:
        match piece:
            case Function(name, arguments):
                return f"fenceline.{name}({', '.join([f'p_{key} => {place(arguments[key])}' for key in arguments])})"
            case As(kind, value, seal):
                if seal is not None:
                    seals[len(parameters)] = seal
                return f"cast({place(value)} as {kind})"
            case Sql():
                return piece
            case _:
                parameters.append(piece)
                return f"${len(parameters)}"

    sql = template.format(*[place(piece) for piece in pieces])
    return Call(sql, tuple(parameters), decode, repeatable=repeatable, seals=seals, opens=opens)


def value_of(called: Function, decode: Callable[[Sequence[Row]], T] = scalar, *, repeatable: bool = False) -> Call[T]:
    """The one value that a function gives."""
    return statement("select {}", called, decode=decode, repeatable=repeatable)


def rows_of(
    called: Function, columns: str, decode: Callable[[Sequence[Row]], T], *, repeatable: bool = False
) -> Call[T]:
    """Columns of the rows that a function gives; the whole row is `r`."""
    return statement("select {} from {} r", Sql(columns), called, decode=decode, repeatable=repeatable)


def text_of(call: Call[Any]) -> Call[str]:
    """For a call that answers with JSON: the text of it, to be passed on as it is."""
    return replace(call, decode=scalar)


#: A page of a list ends before the row that would make it longer; one row it always has.
PAGE_BYTES = 4 * 2**20
_PAGE = """
select p.item, p.rows
from (select q.item, row_number() over () as place, count(*) over () as rows,
             sum(octet_length(q.item::text)) over (rows unbounded preceding) as bytes
      from (select * from ({call}) r(item) offset ${skip}) q) p
where p.place = 1 or p.bytes <= ${most}
"""


def page_of(call: Call[list[Any]], skip: int = 0) -> Call[tuple[list[str], int | None]]:
    """For a call whose rows are one JSON value each: the texts of those behind the first `skip`, as many as a page has
    room for, and how many to skip for the next one; None: there is none.
    """
    place = len(call.parameters)

    def decode(rows: Sequence[Row]) -> tuple[list[str], int | None]:
        return [row[0] for row in rows], skip + len(rows) if rows and len(rows) < rows[0][1] else None

    sql = _PAGE.format(call=call.sql, skip=place + 1, most=place + 2)
    parameters = (*call.parameters, skip, PAGE_BYTES)
    return Call(sql, parameters, decode, repeatable=call.repeatable, seals=call.seals, opens=call.opens)


def texts_of(call: Call[list[Any]]) -> Call[list[str]]:
    """The same, one text for each row."""
    return replace(call, decode=column)
