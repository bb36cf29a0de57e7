"""The form in which people see a job's id: `01HQ-3KBR-T5GN-8W`.

Thirteen symbols of Crockford's Base32 carry the 63-bit integer, the fourteenth is the integer modulo 37. As
37 is prime and larger than the alphabet, every single wrong symbol and every swap of two neighbours is
noticed. `sql/functions/public_id.sql` and `parse_public_id.sql` do the same in the database; a test holds
them together.
"""

from typing import Final

MAX_ID: Final = 2**63 - 1

_SYMBOLS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CHECK_SYMBOLS: Final = _SYMBOLS + "*~$=U"
_VALUES: Final = {symbol: value for value, symbol in enumerate(_SYMBOLS)}
_LENGTH: Final = 14

# ASCII only: str.upper() would also fold letters such as the dotless i into valid symbols.
_NORMALISE: Final = str.maketrans("abcdefghijklmnopqrstuvwxyzILO", "ABCDEFGH1JK1MN0PQRSTUVWXYZ110", "-")


class InvalidId(ValueError):  # noqa: N818 - the public exceptions are named after what is wrong
    """The text is not a job id. The message names the text and the rule it breaks."""


def format_id(value: int) -> str:
    """Write an id for people. Raises `ValueError` outside 0 … 2**63 - 1.

    >>> format_id(123456789012345)
    '0003-G923-0VQV-SQ'
    """
    if not 0 <= value <= MAX_ID:
        raise ValueError(f"{value} is not an id: ids run from 0 to {MAX_ID}")
    symbols = "".join(_SYMBOLS[value >> shift & 31] for shift in range(60, -5, -5))
    symbols += _CHECK_SYMBOLS[value % 37]
    return f"{symbols[:4]}-{symbols[4:8]}-{symbols[8:12]}-{symbols[12:]}"


def parse_id(text: str) -> int:
    """Read an id as people type it: in any case, with or without hyphens, with I or L for 1 and O for 0.

    Raises `InvalidId` for a wrong check symbol, a symbol outside the alphabet, a wrong length, or a value
    above 2**63 - 1.

    >>> parse_id("0003g923ovqvsq")
    123456789012345
    """
    symbols = text.translate(_NORMALISE)
    if len(symbols) != _LENGTH:
        raise _invalid(text, f"an id has {_LENGTH} symbols without the hyphens, this has {len(symbols)}")
    value = 0
    for symbol in symbols[:-1]:
        if symbol not in _VALUES:
            raise _invalid(text, f"{symbol!r} is not a symbol of an id")
        value = value * 32 + _VALUES[symbol]
    if symbols[-1] not in _CHECK_SYMBOLS:
        raise _invalid(text, f"{symbols[-1]!r} is not a check symbol")
    if value > MAX_ID:
        raise _invalid(text, "it is larger than any id")
    if symbols[-1] != _CHECK_SYMBOLS[value % 37]:
        raise _invalid(text, "the check symbol does not fit; one of the symbols is mistyped")
    return value


def _invalid(text: str, rule: str) -> InvalidId:
    return InvalidId(f"{text[:40]!r} is not a job id: {rule}")
