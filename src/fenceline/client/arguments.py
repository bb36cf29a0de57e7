"""A handler's signature as the contract for its args and its result: JSON on one side, Python values on the other.

pydantic does the work. It is imported when the first args are validated, not with the package.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NotRequired, get_type_hints

from fenceline.errors import InvalidArgs, InvalidResult

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

#: The parameter through which a handler gets its context; never part of the args.
CONTEXT = "ctx"
MAX_DEPTH = 64


class Arguments:
    """What `kind` takes and returns, read from its handler."""

    def __init__(self, kind: str, handler: Callable[..., Any]) -> None:
        self.kind = kind
        self._handler = handler
        parameters = [p for p in inspect.signature(handler).parameters.values() if p.name != CONTEXT]
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"handler {handler.__qualname__} takes {parameter}: args are stored by name, so name each of them"
                )
        self._signature = inspect.Signature(parameters)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The args by name, as the call gave them."""
        if not args:
            return dict(kwargs)
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidArgs(f"args of kind {self.kind!r} do not fit its handler: {error}") from error

    def encode(self, args: Mapping[str, Any]) -> str:
        """Args as JSON text, validated. Raises InvalidArgs naming each argument and what is wrong with it."""
        from pydantic import ValidationError  # noqa: PLC0415 - keeps `import fenceline` quick

        try:
            text = self._args.dump_json(self._args.validate_python(args)).decode()
        except ValidationError as error:
            raise InvalidArgs(self._explain("args", error)) from error
        except ValueError as error:  # pydantic's serializer: cycles, unknown types, half a surrogate pair
            raise InvalidArgs(f"args of kind {self.kind!r} cannot be written as JSON: {error}") from error
        check_depth(self.kind, text)
        return text

    def encode_many(self, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """Like `encode`, for many."""
        encode = self.encode
        return [encode(args) for args in many]

    def decode(self, text: str) -> dict[str, Any]:
        """Args from JSON text, as the values that the handler's annotations ask for. Raises InvalidArgs."""
        from pydantic import ValidationError  # noqa: PLC0415 - keeps `import fenceline` quick

        try:
            return self._args.validate_json(text)
        except ValidationError as error:
            raise InvalidArgs(self._explain("args", error)) from error

    def encode_result(self, value: Any) -> str | None:
        """A handler's return value as JSON text; None stays None. Raises InvalidResult."""
        if value is None:
            return None
        from pydantic import ValidationError  # noqa: PLC0415 - keeps `import fenceline` quick
        from pydantic_core import PydanticSerializationError  # noqa: PLC0415 - as above

        try:
            return self._result.dump_json(self._result.validate_python(value)).decode()
        except ValidationError as error:
            raise InvalidResult(self._explain("the result", error)) from error
        except PydanticSerializationError as error:
            raise InvalidResult(f"the result of kind {self.kind!r} cannot be written as JSON: {error}") from error

    def decode_result(self, value: Any) -> Any:
        """A stored result as the value that the handler's annotation promises."""
        if value is None:
            return None
        from pydantic import ValidationError  # noqa: PLC0415 - keeps `import fenceline` quick

        try:
            # As JSON, not as Python: only so do "1.50" and "2026-01-31" become Decimal and date in every mode.
            return self._result.validate_json(json.dumps(value))
        except ValidationError as error:
            raise InvalidResult(self._explain("the result", error)) from error

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self._handler, include_extras=True)

    @cached_property
    def _args(self) -> "TypeAdapter[dict[str, Any]]":
        from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415 - keeps `import fenceline` quick
        from typing_extensions import TypedDict  # noqa: PLC0415 - as above

        fields: dict[str, Any] = {}
        for parameter in self._signature.parameters.values():
            hint = self._hints.get(parameter.name, Any)
            fields[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
        # Of typing_extensions, as pydantic asks before Python 3.12; the fields are known at run time only, so there is
        # nothing for a checker to follow.
        make_typed_dict: Any = TypedDict
        model = make_typed_dict("Args", fields)
        model.__pydantic_config__ = ConfigDict(extra="forbid")
        return TypeAdapter(model)

    @cached_property
    def _result(self) -> "TypeAdapter[Any]":
        from pydantic import TypeAdapter  # noqa: PLC0415 - keeps `import fenceline` quick

        return TypeAdapter(self._hints.get("return", Any))

    def _explain(self, what: str, error: "ValidationError") -> str:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or what}: {problem['msg']}"
            + (f" (got {problem['input']!r:.80})" if problem["type"] != "missing" else "")
            for problem in error.errors(include_url=False)[:10]
        )
        return f"{what} of kind {self.kind!r} do not fit its handler: {problems}"


def encode_plain(kind: str, args: Mapping[str, Any] | None) -> str:
    """Args of a kind whose handler is not known here: anything that pydantic can write as JSON."""
    from pydantic_core import PydanticSerializationError, to_json  # noqa: PLC0415 - keeps `import fenceline` quick

    try:
        text = to_json({} if args is None else args).decode()
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidArgs(f"args of kind {kind!r} cannot be written as JSON: {error}") from error
    check_depth(kind, text)
    return text


def check_depth(kind: str, text: str) -> None:
    """Refuse JSON so deep that readers in other languages choke on it."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    level = [json.loads(text)]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    if any(isinstance(value, dict | list) for value in level):
        raise InvalidArgs(f"args of kind {kind!r} are nested more than {MAX_DEPTH} levels deep")
