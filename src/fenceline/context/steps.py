"""Durable steps: a finished step is not run again, not even by another attempt."""

import dataclasses
import hashlib
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from fenceline.client.arguments import dump_json
from fenceline.errors import InvalidOption, InvalidResult, StepMismatch

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_NAME = 200


class Steps:
    """The steps of one attempt: those that earlier attempts finished, and how often each name was used."""

    def __init__(self, done: Mapping[str, Mapping[str, Any]]) -> None:
        self._done = done
        self._names = Names()

    def begin(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> "Step":
        """The step to run or to skip. While a handler takes its steps in the same order, each use of a name keeps its
        number from attempt to attempt. Raises StepMismatch, InvalidOption.
        """
        numbered, done = self.next(name)
        step = Step(numbered, function, hash_of(args, kwargs))
        if done is not None:
            if done["args_hash"] is not None and done["args_hash"] != step.args_hash:
                raise StepMismatch(
                    f"step {step.name!r} was done before with other arguments: the handler has changed, or takes its "
                    "steps in another order. Give each use of a step its own name"
                )
            step.keep(done["result"])
        return step

    def next(self, name: str) -> tuple[str, Mapping[str, Any] | None]:
        """The name of this use, and what an earlier attempt stored under it. Raises InvalidOption."""
        numbered = self._names.next(name)
        return numbered, self._done.get(numbered)


class Names:
    """Names for uses: the second use of `load`, as in a loop, is `load#2`."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        self._taken: set[str] = set()

    def next(self, name: str) -> str:
        """The name of this use. Raises InvalidOption before anything has run."""
        use = self._uses.get(name, 0) + 1
        while (numbered := name if use == 1 else f"{name}#{use}") in self._taken:  # somebody may have said "load#2"
            use += 1
        if not 1 <= len(numbered) <= MAX_NAME or "\x00" in name:
            raise InvalidOption(f"step name {numbered[:80]!r} is not valid: use text of 1 to {MAX_NAME} characters")
        self._uses[name] = use
        self._taken.add(numbered)
        return numbered


def names_of_uses(names: Iterable[str]) -> list[str]:
    """The names as their uses will have them. Raises InvalidOption."""
    given = Names()
    return [given.next(name) for name in names]


class Step:
    """One step: its name, and how its result becomes JSON and is read back."""

    def __init__(self, name: str, function: Callable[..., Any], args_hash: str) -> None:
        self.name = name
        self.args_hash = args_hash
        self.is_done = False
        self._result: Any = None
        self._function = function
        self._started = time.monotonic()

    @property
    def ran_seconds(self) -> float:
        return time.monotonic() - self._started

    def finish(self, result: str | None) -> None:
        """It has run, with this result as JSON text."""
        self.keep(None if result is None else json.loads(result))

    def keep(self, result: Any) -> None:
        self.is_done = True
        self._result = result

    def encode(self, value: Any) -> str | None:
        """A result as JSON text, checked that it can be read back. Raises InvalidResult."""
        if value is None:
            return None
        try:
            return dump_json(self._adapter, self._adapter.validate_python(value))
        except ValueError as error:
            raise InvalidResult(f"the result of step {self.name!r} cannot be kept as JSON: {error}") from error

    def decode(self) -> Any:
        """The kept result as the type that the function declares; without a declaration, as JSON has it.

        The first run goes through here too, so that a handler sees the same whether the step ran or was skipped.
        """
        if self._result is None:
            return None
        try:
            return self._adapter.validate_json(json.dumps(self._result))
        except ValueError as error:
            raise InvalidResult(f"the kept result of step {self.name!r} does not fit its function: {error}") from error

    @cached_property
    def _adapter(self) -> "TypeAdapter[Any]":
        from pydantic import PydanticSchemaGenerationError, TypeAdapter

        try:
            return TypeAdapter(_declared_result(self._function))
        except PydanticSchemaGenerationError as error:
            raise InvalidResult(f"the result of step {self.name!r} has no form in JSON: {error.message}") from error


def _declared_result(function: Callable[..., Any]) -> Any:
    while isinstance(function, partial):
        function = function.func
    try:
        hint = get_type_hints(inspect.unwrap(function), include_extras=True).get("return", Any)
    except (NameError, TypeError):  # annotations for type checkers only; callables without any
        return Any
    if get_origin(hint) in (Awaitable, Coroutine):  # a def that returns what is to be awaited
        return get_args(hint)[-1]
    return hint


def hash_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A hash of a call's arguments, the same in every process. What JSON cannot hold (a session, a client) is hashed by
    its type.
    """
    return hashlib.sha256(_text_of([list(args), dict(kwargs)]).encode()).hexdigest()[:32]


def _text_of(value: Any) -> str:
    from pydantic_core import to_jsonable_python

    plain = to_jsonable_python(
        _in_order(value), fallback=lambda other: f"<{type(other).__qualname__}>", bytes_mode="base64"
    )
    return json.dumps(plain, sort_keys=True)


def _in_order(value: Any) -> Any:
    """Sets have another order in every process."""
    if isinstance(value, set | frozenset):
        return sorted(_text_of(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [_in_order(inner) for inner in value]
    if isinstance(value, Mapping):
        return {key: _in_order(inner) for key, inner in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _in_order(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "__pydantic_validator__") and not isinstance(value, type):
        return _in_order(dict(value))
    return value
