import re
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fenceline.errors import InvalidId
from fenceline.model.public_id import MAX_ID, format_id, parse_id

DATA_SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
EDGES = [0, 1, 31, 32, 36, 37, 2**31, 2**60 - 1, 2**60, 2**62, MAX_ID - 1, MAX_ID]

ids = st.integers(min_value=0, max_value=MAX_ID)


@given(ids)
def test_round_trip(value: int) -> None:
    text = format_id(value)
    assert [len(group) for group in text.split("-")] == [4, 4, 4, 3]
    assert parse_id(text) == value


@pytest.mark.parametrize("value", EDGES)
def test_round_trip_at_the_edges(value: int) -> None:
    assert parse_id(format_id(value)) == value


def test_known_ids() -> None:
    assert format_id(0) == "0000-0000-0000-000"
    assert format_id(123456789012345) == "0003-G923-0VQV-SW0"
    assert format_id(MAX_ID) == "7ZZZ-ZZZZ-ZZZZ-ZPP"


@given(ids)
def test_only_digits_capitals_and_hyphens(value: int) -> None:
    """What a double click, a shell and a URL take as it is."""
    assert re.fullmatch(r"[0-9A-Z-]+", format_id(value))


#: As version 0.1 wrote them; each of its five further check symbols is among them.
OLD = {
    "0003-G923-0VQV-SQ": 123456789012345,
    "0000-0000-0000-00": 0,
    "7ZZZ-ZZZZ-ZZZZ-Z5": MAX_ID,
    "0000-0000-0001-0*": 32,
    "0000-0000-0001-1~": 33,
    "0000-0000-0001-2$": 34,
    "0000-0000-0001-3=": 35,
    "0000-0000-0001-4U": 36,
}


@pytest.mark.parametrize("text, value", OLD.items())
def test_ids_of_the_version_before_are_read(text: str, value: int) -> None:
    assert parse_id(text) == parse_id(text.lower()) == value


@given(st.lists(ids, min_size=2, max_size=2, unique=True))
def test_text_sorts_as_the_numbers_do(pair: list[int]) -> None:
    low, high = sorted(pair)
    assert format_id(low)[:-2] < format_id(high)[:-2]


@given(ids)
def test_parsing_tolerates_what_people_do(value: int) -> None:
    text = format_id(value)
    typed = text.replace("-", "").lower().replace("0", "o").replace("1", "l")
    assert parse_id(typed) == value
    assert parse_id(typed.replace("l", "I").replace("o", "O")) == value
    assert parse_id("-".join(text)) == value


@given(ids)
def test_every_single_wrong_symbol_is_noticed(value: int) -> None:
    symbols = format_id(value).replace("-", "")
    for place, right in enumerate(symbols):
        for wrong in DATA_SYMBOLS:
            if wrong != right:
                with pytest.raises(InvalidId):
                    parse_id(symbols[:place] + wrong + symbols[place + 1 :])


@given(ids)
def test_every_swap_of_unequal_neighbours_is_noticed(value: int) -> None:
    symbols = format_id(value).replace("-", "")
    for place in range(len(symbols) - 1):
        first, second = symbols[place], symbols[place + 1]
        if first != second:
            with pytest.raises(InvalidId):
                parse_id(symbols[:place] + second + first + symbols[place + 2 :])


BAD_TEXTS = [
    ("", "15 symbols"),
    ("0003-G923-0VQV-S", "15 symbols"),
    ("0003-G923-0VQV-SW00", "15 symbols"),
    ("0003-G923-0VQU-SW0", "'U' is not a symbol"),
    ("0003-G923-0VQ\u0131-SW0", "is not a symbol"),  # str.upper() would make this dotless i a 1
    (" 003-G923-0VQV-SW0", "' ' is not a symbol"),
    ("0003-G923-0VQV-SW!", "check symbols do not fit"),
    ("0003-G923-0VQV-SWR", "check symbols do not fit"),
    ("0003-G923-0VQV-SR", "check symbols do not fit"),
    ("8000-0000-0000-00G", "larger than any id"),
    ("ZZZZ-ZZZZ-ZZZZ-ZZZ", "larger than any id"),
]


@pytest.mark.parametrize("text, rule", BAD_TEXTS)
def test_a_bad_text_is_named_with_its_rule(text: str, rule: str) -> None:
    with pytest.raises(InvalidId, match=rule) as caught:
        parse_id(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("value", [5, None, b"0003-G923-0VQV-SW0"])
def test_what_is_no_text_is_no_id(value: Any) -> None:
    with pytest.raises(InvalidId, match="an id is a string"):
        parse_id(value)


def test_a_long_text_is_not_repeated_whole() -> None:
    with pytest.raises(InvalidId) as caught:
        parse_id("x" * 1_000_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [-1, MAX_ID + 1])
def test_numbers_outside_the_range_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        format_id(value)


async def test_sql_and_python_agree(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        random = await connection.fetch(
            "select floor(random() * 9223372036854770000)::bigint >> (n % 60) as value from generate_series(1, 2000) n"
        )
        values = [*EDGES, *(row["value"] for row in random)]
        rows = await connection.fetch(
            """
            select value, text, fenceline.parse_public_id(text) as parsed,
                   fenceline.parse_public_id(lower(replace(replace(text, '-', ''), '1', 'i'))) as typed
            from (select value, fenceline.public_id(value) as text from unnest($1::bigint[]) value) as made
            """,
            values,
        )
        assert [row["text"] for row in rows] == [format_id(value) for value in values]
        assert [row["parsed"] for row in rows] == values
        assert [row["typed"] for row in rows] == values
        old = await connection.fetch("select fenceline.parse_public_id(t) from unnest($1::text[]) t", list(OLD))
        assert [row[0] for row in old] == list(OLD.values())
        assert await connection.fetchval("select fenceline.public_id(null)") is None
        assert await connection.fetchval("select fenceline.parse_public_id(null)") is None
    finally:
        await connection.close()


@pytest.mark.parametrize("text, rule", BAD_TEXTS)
async def test_sql_refuses_what_python_refuses(database: str, text: str, rule: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        with pytest.raises(asyncpg.PostgresError, match=rule) as caught:
            await connection.fetchval("select fenceline.parse_public_id($1)", text)
        assert caught.value.sqlstate == "FL017"
        assert f"'{text}'" in str(caught.value)
    finally:
        await connection.close()


async def test_sql_refuses_a_negative_id(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        with pytest.raises(asyncpg.PostgresError, match="-1 is not an id") as caught:
            await connection.fetchval("select fenceline.public_id(-1)")
        assert caught.value.sqlstate == "FL017"
    finally:
        await connection.close()
