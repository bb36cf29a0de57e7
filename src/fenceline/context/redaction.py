"""Temporary credentials of a handler: never stored, and redacted wherever they would be."""

import weakref
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from fenceline.context.spellings import spellings

REDACTED = "[redacted]"

#: Set while a provider fetches credentials: its answers may be secret, and it is not yet known which parts.
is_exchanging: ContextVar[bool] = ContextVar("fenceline_is_exchanging", default=False)


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


#: Those in use in this process: whatever it prints or logs passes all of them, whichever job it came from.
_in_use: "weakref.WeakSet[Redactor]" = weakref.WeakSet()


def redact(text: str) -> str:
    """A text without the credentials that are in use in this process."""
    for redactor in list(_in_use):
        text = redactor.in_text(text)
    return text


def has_secrets() -> bool:
    """Whether any credentials are in use in this process."""
    return bool(_in_use)


def open_end(text: str) -> int:
    """How many characters at the end of a text may be the beginning of a secret."""
    return max((redactor.open_end(text) for redactor in list(_in_use)), default=0)


class Redactor:
    """Takes the values of credentials out of whatever is about to be written."""

    def __init__(self, credentials: Credentials) -> None:
        # The longest first: one may be part of another.
        self._secrets = sorted(spellings(list(credentials.values())), key=len, reverse=True)
        _in_use.add(self)

    def in_text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def open_end(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of one of the secrets."""
        longest = 0
        for secret in self._secrets if text else ():
            end = secret.rfind(text[-1], 0, len(secret) - 1)
            while end >= longest:
                if text.endswith(secret[: end + 1]):
                    longest = end + 1
                end = secret.rfind(text[-1], 0, end)
        return longest

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
