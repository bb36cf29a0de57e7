"""Durable steps: a step that is done is not done again, by whichever attempt."""

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from fenceline.errors import InvalidResult, StepMismatch

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Steps:
    """The steps of one attempt: those of earlier ones that are done, and how often each name was used."""

    def __init__(self, done: Mapping[str, Mapping[str, Any]]) -> None:
        self._done = dict(done)
        self._uses: dict[str, int] = {}

    def begin(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> "Step":
        """The step to run, or to skip. In a loop the second use of a name is `name#2`, and so on: as long as a handler
        takes its steps in the same order, each keeps its name from attempt to attempt. Raises StepMismatch.
        """
        use = self._uses[name] = self._uses.get(name, 0) + 1
        step = Step(name if use == 1 else f"{name}#{use}", function, hash_of(args, kwargs))
        done = self._done.get(step.name)
        if done is not None:
            if done["args_hash"] is not None and done["args_hash"] != step.args_hash:
                raise StepMismatch(
                    f"step {step.name!r} was done before with other arguments: the handler has changed, or takes its "
                    "steps in another order. Give each use of a step a name of its own"
                )
            step.is_done = True
            step.result = done["result"]
        return step

    def finish(self, step: "Step", result: str | None) -> None:
        self._done[step.name] = {"args_hash": step.args_hash, "result": None if result is None else json.loads(result)}

    def result_of(self, step: "Step") -> Any:
        return self._done[step.name]["result"]


class Step:
    """One step: what it is called, and how its result becomes JSON and comes back."""

    def __init__(self, name: str, function: Callable[..., Any], args_hash: str) -> None:
        self.name = name
        self.args_hash = args_hash
        self.is_done = False
        self.result: Any = None
        self.started = time.monotonic()
        self._function = function

    @property
    def ran_seconds(self) -> float:
        return time.monotonic() - self.started

    def encode(self, value: Any) -> str | None:
        """A result as JSON text. Raises InvalidResult."""
        if value is None:
            return None
        try:
            return self._adapter.dump_json(value).decode()
        except ValueError as error:
            raise InvalidResult(f"the result of step {self.name!r} cannot be kept as JSON: {error}") from error

    def decode(self, value: Any) -> Any:
        """A kept result as the type that the function declares; without a declaration, as JSON has it.

        The first run goes through here too, so that a handler sees the same whether the step ran or was skipped.
        """
        if value is None:
            return None
        try:
            return self._adapter.validate_json(json.dumps(value))
        except ValueError as error:
            raise InvalidResult(f"the kept result of step {self.name!r} does not fit its function: {error}") from error

    @property
    def _adapter(self) -> "TypeAdapter[Any]":
        from pydantic import PydanticSchemaGenerationError, TypeAdapter  # noqa: PLC0415 - keeps `import fenceline` quick

        try:
            hint = get_type_hints(inspect.unwrap(self._function)).get("return", Any)
        except (NameError, TypeError):  # annotations for type checkers only; callables without any
            hint = Any
        try:
            return TypeAdapter(hint)
        except PydanticSchemaGenerationError as error:
            raise InvalidResult(f"the result of step {self.name!r} has no form in JSON: {error.message}") from error


def hash_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A hash of a call's arguments. What JSON has no form for (a session, a client) counts by its type."""
    from pydantic_core import to_json  # noqa: PLC0415 - keeps `import fenceline` quick

    text = to_json([args, dict(sorted(kwargs.items()))], fallback=lambda value: f"<{type(value).__qualname__}>")
    return hashlib.sha256(text).hexdigest()[:32]
