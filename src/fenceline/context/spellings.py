"""The ways in which a secret may be written down: as it is, quoted, and encoded."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

#: Shorter values are not secrets, and would be found inside ordinary words.
SHORTEST = 6
#: Inside a longer text, the base64 of a secret begins with up to three symbols that also hold what comes before it.
_SHARED = (0, 2, 3)
_SYMBOL_BITS = 6
_URL_SAFE = str.maketrans("+/", "-_")
_QUOTES = "\"'"
_QUOTINGS: tuple[Callable[[str], str], ...] = (
    lambda text: repr(text)[1:-1],
    lambda text: repr(_QUOTES + text)[1 + len("\"\\'") : -1],  # in a text that has both quotes
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
)


def spellings(values: Any) -> set[str]:
    """Every spelling of every text and bytes in a structure that is long enough to be a secret."""
    found: set[str] = set()
    for secret in _secrets(values):
        if isinstance(secret, str):
            found |= _of_text(secret)
        elif len(secret) >= SHORTEST:
            found |= _of_text(secret.decode(errors="ignore")) | {repr(secret)[2:-1]} | set(_encoded(secret))
    return found


def _secrets(value: Any) -> Iterator[str | bytes]:
    if isinstance(value, str | bytes):
        yield value
    elif isinstance(value, Mapping):
        yield from _secrets(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner)


def _of_text(secret: str) -> set[str]:
    """The secret as it is, and as Python and JSON write it: once, and once more inside another text; and encoded."""
    if len(secret) < SHORTEST:
        return set()
    once = {secret} | {quoted(secret) for quoted in _QUOTINGS}
    twice = once | {quoted(text) for text in once for quoted in _QUOTINGS}
    return twice | {form for text in once for form in _encoded(text.encode(errors="surrogatepass"))}


def _encoded(secret: bytes) -> Iterator[str]:
    yield from (secret.hex(), secret.hex().upper())
    for form in (*(quote(secret, safe=safe) for safe in ("/", "", "!'()*")), quote_plus(secret)):
        yield form
        yield _lower_escapes(form)
    yield base64.encodebytes(secret).decode().rstrip("\n")  # with line ends, as in e-mail
    padded = base64.b64encode(secret).decode()
    for text in (padded, *_inside_base64(secret)):
        yield text
        yield text.translate(_URL_SAFE)


def _inside_base64(secret: bytes) -> Iterator[str]:
    """The part of a base64 text that depends on the secret alone, without symbols that hold bits of its neighbours."""
    for before, shared in enumerate(_SHARED):
        bits = 8 * (before + len(secret))
        yield base64.b64encode(bytes(before) + secret).decode()[shared : bits // _SYMBOL_BITS]


def _lower_escapes(quoted: str) -> str:
    """`%2f` for `%2F`: both are in use."""
    first, *parts = quoted.split("%")
    return "%".join((first, *(part[:2].lower() + part[2:] for part in parts)))
