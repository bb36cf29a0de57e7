"""The form in which people see a job's id: `01HQ-3KBR-T5GN-8WX`.

Thirteen symbols of Crockford's Base32 carry the 63-bit integer; two more, of the same alphabet, are the integer modulo
1021. As 1021 is prime and larger than the alphabet, every single wrong symbol and every swap of two neighbours is
noticed. Digits, capital letters and hyphens only: a double click, a shell and a URL take an id as it is.

Version 0.1 wrote one check symbol, the integer modulo 37, of a larger alphabet. Such ids are kept in other people's
tables, so they are read for ever. `public_id.sql` and `parse_public_id.sql` in `sql/functions/rules/` do the same in
the database; a test holds them together.
"""

from typing import Final

MAX_ID: Final = 2**63 - 1

_SYMBOLS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ALPHABET: Final = frozenset(_SYMBOLS)
_DIGITS: Final = str.maketrans(_SYMBOLS, "0123456789abcdefghijklmnopqrstuv")  # as int() reads them
_CHECK: Final = 1021
_DATA_LENGTH: Final = 13
_LENGTH: Final = 15

_OLD_CHECK_SYMBOLS: Final = _SYMBOLS + "*~$=U"
_OLD_LENGTH: Final = 14

# ASCII only: str.upper() would also fold letters such as the dotless i into valid symbols.
_NORMALISE: Final = str.maketrans("abcdefghijklmnopqrstuvwxyzILO", "ABCDEFGH1JK1MN0PQRSTUVWXYZ110", "-")


class InvalidId(ValueError):
    """The text is not a job id. The message names the text and the rule it breaks."""


def format_id(value: int) -> str:
    """Write an id for people. Raises `ValueError` outside 0 … 2**63 - 1.

    >>> format_id(123456789012345)
    '0003-G923-0VQV-SW0'
    """
    if not 0 <= value <= MAX_ID:
        raise ValueError(f"{value} is not an id: ids run from 0 to {MAX_ID}")
    symbols = "".join(_SYMBOLS[value >> shift & 31] for shift in range(60, -5, -5)) + _check_of(value)
    return f"{symbols[:4]}-{symbols[4:8]}-{symbols[8:12]}-{symbols[12:]}"


def parse_id(text: str) -> int:
    """Read an id as people type it: in any case, with or without hyphens, with I or L for 1 and O for 0.

    Raises `InvalidId` for wrong check symbols, a symbol outside the alphabet, a wrong length, or a value above
    2**63 - 1.

    >>> parse_id("0003g9230vqvsw0")
    123456789012345
    """
    if not isinstance(text, str):
        raise InvalidId(f"{text!r} is not a job id: an id is a string")
    symbols = text.translate(_NORMALISE)
    if len(symbols) not in (_LENGTH, _OLD_LENGTH):
        raise _invalid(text, f"an id has {_LENGTH} symbols without the hyphens, this has {len(symbols)}")
    data = symbols[:_DATA_LENGTH]
    if not _ALPHABET.issuperset(data):
        wrong = next(symbol for symbol in data if symbol not in _ALPHABET)
        raise _invalid(text, f"{wrong!r} is not a symbol of an id")
    value = int(data.translate(_DIGITS), 32)
    if value > MAX_ID:
        raise _invalid(text, "it is larger than any id")
    expected = _check_of(value) if len(symbols) == _LENGTH else _OLD_CHECK_SYMBOLS[value % 37]
    if symbols[_DATA_LENGTH:] != expected:
        raise _invalid(text, "the check symbols do not fit; one of the symbols is mistyped")
    return value


def _check_of(value: int) -> str:
    check = value % _CHECK
    return _SYMBOLS[check >> 5] + _SYMBOLS[check & 31]


def _invalid(text: str, rule: str) -> InvalidId:
    return InvalidId(f"{text[:40]!r} is not a job id: {rule}")
