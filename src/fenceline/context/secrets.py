"""Temporary credentials in a handler's hands: they are never stored, and redacted wherever they would be."""

import json
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

REDACTED = "[redacted]"
#: What is shorter is no secret, and would be found inside ordinary words.
SHORTEST_SECRET = 6


class Credentials(Mapping[str, Any]):
    """A mapping that shows its keys but not its values when it is printed. `credentials["token"]` is the value."""

    __slots__ = ("_values", "identity")

    def __init__(self, identity: str, values: Mapping[str, Any]) -> None:
        self.identity = identity
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Credentials of {self.identity}: {', '.join(f'{name}={REDACTED}' for name in self._values)}>"

    def __reduce__(self) -> Any:
        raise TypeError("credentials are not written anywhere, so they cannot be pickled")


#: Those in use in this process: what it prints and logs is for all of them to see, whichever job it came from.
_in_use: "weakref.WeakSet[Redactor]" = weakref.WeakSet()


def redact(text: str) -> str:
    """A text without the credentials that are in use in this process."""
    for redactor in list(_in_use):
        text = redactor.in_text(text)
    return text


class Redactor:
    """Takes the values of credentials out of whatever is about to be written."""

    def __init__(self, credentials: Credentials) -> None:
        secrets = {value for value in _texts(list(credentials.values())) if len(value) >= SHORTEST_SECRET}
        spelled = {text for secret in secrets for text in _spellings(secret)}
        self._secrets = sorted(spelled, key=len, reverse=True)  # the longest first: one may be part of another
        _in_use.add(self)

    def in_text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def in_line(self, message: str, fields: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any] | None]:
        return self.in_text(message), None if fields is None else self.in_fields(fields)

    def in_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of parameters; their names are ours."""
        return {name: self._in_value(value) for name, value in values.items()}

    def in_fields(self, fields: Mapping[Any, Any]) -> dict[str, Any]:
        """Names and values."""
        return {self.in_text(str(name)): self._in_value(value) for name, value in fields.items()}

    def _in_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, Mapping):
            return self.in_fields(value)
        if isinstance(value, list | tuple):
            return [self._in_value(inner) for inner in value]
        return value if isinstance(value, int | float | None) else self.in_text(str(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="ignore")
        yield repr(value)[2:-1]
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _spellings(secret: str) -> set[str]:
    """The secret as it is, and as Python and JSON write it: once, and once more inside another text."""
    spelled = {secret}
    for _depth in range(2):
        spelled |= {encode(text) for text in spelled for encode in _ENCODINGS}
    return spelled


_QUOTES = "\"'"
_ENCODINGS: tuple[Callable[[str], str], ...] = (
    lambda text: repr(text)[1:-1],
    lambda text: repr(_QUOTES + text)[1 + len("\"\\'") : -1],  # in a text that has both quotes
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
)
