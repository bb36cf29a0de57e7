"""Values that are stored encrypted, and how they look in the database.

    {"$sealed": "gAAAAAB…"}     a JSON value
    sealed:gAAAAAB…             a text, where the column is one

Each holds one token of the codec. What is not sealed stays as it is, so values from before a codec was set, or from a
producer without one, can still be read. A token that this program cannot open is shown as it is.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

MARK = "$sealed"
TEXT_MARK = "sealed:"
#: Messages of the log are cut before they are sealed: half a token cannot be opened. The database keeps 8192 bytes.
MAX_MESSAGE_BYTES = 5_500
#: What of an error stays readable: statistics and operators go by these.
OPEN_IN_ERRORS = frozenset({"code", "type", "exit_code"})

_TOKEN = r"[A-Za-z0-9_=.+/-]+"  # noqa: S105 - the form of one
_SEALED = re.compile(rf'\{{\s*"\{MARK}"\s*:\s*"({_TOKEN})"\s*\}}|"{TEXT_MARK}({_TOKEN})"')


class Codec(Protocol):
    """Encrypts what is stored. `cryptography.fernet.Fernet` and `MultiFernet` are such codecs.

    Tokens are of the letters, digits and signs of Base64. `decrypt` raises on a token that is not its own.
    """

    def encrypt(self, data: bytes, /) -> bytes:
        """The token that is stored."""

    def decrypt(self, token: bytes, /) -> bytes:
        """What was encrypted."""


#: Seals a parameter of a call.
Seal = Callable[[Codec, Any], Any]


def is_sealed(text: str) -> bool:
    """Whether JSON text is a sealed value."""
    found = _SEALED.fullmatch(text)
    return found is not None and found[1] is not None


def is_sealed_value(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {MARK}


# How parameters are sealed. Each takes None for None.


def seal_json(codec: Codec, text: str | None) -> str | None:
    """A value, as JSON text."""
    return None if text is None else json.dumps(_envelope(codec, text))


def seal_text(codec: Codec, text: str | None) -> str | None:
    """A text."""
    return None if text is None else TEXT_MARK + codec.encrypt(text.encode()).decode("ascii")


def seal_items(codec: Codec, text: str | None) -> str | None:
    """Each value of a list, as JSON text."""
    return None if text is None else json.dumps([_envelope(codec, json.dumps(item)) for item in json.loads(text)])


def seal_error(codec: Codec, text: str | None) -> str | None:
    """What an error says, but not its code and type; as JSON text."""
    if text is None:
        return None
    error = json.loads(text)
    if not isinstance(error, dict):
        return seal_json(codec, text)
    return json.dumps(
        {
            name: value if _stays_open(codec, name, value) else _envelope(codec, json.dumps(value))
            for name, value in error.items()
        }
    )


def _stays_open(codec: Codec, name: str, value: Any) -> bool:
    return value is None or (name in OPEN_IN_ERRORS and not holds_token(codec, json.dumps(value)))


def seal_lines(codec: Codec, text: str | None) -> str | None:
    """Message and fields of log lines, as JSON text."""
    if text is None:
        return None
    lines = json.loads(text)
    for line in lines:
        if isinstance(line.get("message"), str):
            line["message"] = seal_text(codec, _cut(line["message"]))
        if line.get("fields") is not None:
            line["fields"] = _envelope(codec, json.dumps(line["fields"]))
    return json.dumps(lines)


def seal_specs(codec: Codec, text: str | None) -> str | None:
    """The args of jobs that are described together, as JSON text."""
    if text is None:
        return None
    specs = json.loads(text)
    for spec in specs:
        if "args" in spec:
            spec["args"] = _envelope(codec, json.dumps(spec["args"]))
    return json.dumps(specs)


def each(seal: Seal) -> Seal:
    """The same for every value of a list."""

    def seal_all(codec: Codec, values: list[Any] | None) -> list[Any] | None:
        return None if values is None else [seal(codec, value) for value in values]

    return seal_all


def _envelope(codec: Codec, text: str) -> dict[str, str]:
    return {MARK: codec.encrypt(text.encode()).decode("ascii")}


def _cut(message: str) -> str:
    if len(message) * 4 <= MAX_MESSAGE_BYTES:
        return message
    data = message.encode("utf-8", "replace")
    if len(data) <= MAX_MESSAGE_BYTES:
        return message
    return data[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore") + " … [cut]"


def seal_again(codec: Codec, text: str) -> tuple[str, int]:
    """JSON text with every token in it made anew, and how many there are that cannot be opened."""
    unreadable = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal unreadable
        old = found[1] or found[2]
        opened = _decrypt(codec, old)
        if opened is None:
            unreadable += 1
            return found[0]
        return found[0].replace(old, codec.encrypt(opened.encode()).decode("ascii"))

    return _SEALED.sub(replace, text), unreadable


def holds_token(codec: Codec, text: str) -> bool:
    """Whether a text, JSON or not, has a token in it that would be opened in an answer."""
    if TEXT_MARK not in text and MARK not in text:
        return False
    tokens = [text.removeprefix(TEXT_MARK)] if text.startswith(TEXT_MARK) else []
    tokens += [found[1] or found[2] for found in _SEALED.finditer(text)]
    return any(_decrypt(codec, token) is not None for token in tokens)


# How answers are opened.


def open_value(codec: Codec, value: Any) -> Any:
    """A column of an answer with everything that is sealed in it opened."""
    match value:
        case str():
            return _open_text(codec, value)
        case dict():
            token = value.get(MARK)
            if len(value) == 1 and isinstance(token, str):
                opened = _decrypt(codec, token)
                return value if opened is None else json.loads(opened)
            return {name: open_value(codec, inner) for name, inner in value.items()}
        case list():
            return [open_value(codec, inner) for inner in value]
        case _:
            return value


def _open_text(codec: Codec, text: str) -> str:
    if text.startswith(TEXT_MARK):
        opened = _decrypt(codec, text.removeprefix(TEXT_MARK))
        return text if opened is None else opened
    # The marks cannot be part of a longer text: there its quotation marks would have backslashes before them.
    if f'"{MARK}"' not in text and f'"{TEXT_MARK}' not in text:
        return text

    def replace(found: re.Match[str]) -> str:
        opened = _decrypt(codec, found[1] or found[2])
        if opened is None:
            return found[0]
        return opened if found[1] else json.dumps(opened, ensure_ascii=False)

    return _SEALED.sub(replace, text)


def _decrypt(codec: Codec, token: str) -> str | None:
    try:
        return codec.decrypt(token.encode()).decode()
    except Exception:  # noqa: BLE001 - each codec has errors of its own; what cannot be opened is shown as it is
        return None
