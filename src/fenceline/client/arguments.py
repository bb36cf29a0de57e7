"""A handler's signature as the contract for its args and its result: JSON on one side, Python values on the other.

pydantic does the work. It is imported when the first args are validated, not with the package.
"""

import hashlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict

from fenceline.errors import InvalidArgs, InvalidResult, Sealed
from fenceline.model.json_text import has_zero_character
from fenceline.model.sealed import is_sealed, is_sealed_value
from fenceline.model.with_errors import WithErrors

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: The parameter that receives the context; never part of the args.
CONTEXT = "ctx"
#: Where its types are defined. They belong to a layer above, so they are recognised by name.
CONTEXT_MODULES = ("fenceline.context.context", "fenceline.context.sync_context", "fenceline.context.batch_context")
MAX_DEPTH = 64
MAX_DIGITS = 4300
#: In the repr of an object without a name: different in every process.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS + 1}}}")


class Arguments:
    """What `kind` takes and returns, read from its handler."""

    def __init__(
        self,
        kind: str,
        handler: Callable[..., Any],
        local_names: Mapping[str, Any] | None = None,
        *,
        ignores_extra: bool = False,
    ) -> None:
        """`local_names`: names around a handler that is defined inside a function, for annotations that are strings.
        `ignores_extra`: leave out stored args that the handler does not take; an enqueue still refuses them.
        """
        self.kind = kind
        self._ignores_extra = ignores_extra
        self._handler = handler
        self._local_names = local_names
        given = inspect.signature(handler).parameters.values()
        parameters = [p for p in given if p.name != CONTEXT]
        for parameter in given:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(
                    f"handler {handler.__qualname__} takes {parameter}, but args are stored by name: "
                    "use plain or keyword-only parameters"
                )
        for parameter in parameters:
            if getattr(parameter.annotation, "__module__", None) in CONTEXT_MODULES:
                raise TypeError(
                    f"handler {handler.__qualname__} takes its context as {parameter.name!r}: rename the parameter "
                    f"to {CONTEXT!r}"
                )
        self._signature = inspect.Signature(parameters)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The args of a call, by name."""
        if not args:
            return kwargs
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidArgs(f"args of kind {self.kind!r} do not fit its handler: {error}") from error

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Args as the values that the annotations ask for. Raises InvalidArgs, naming each bad argument."""
        try:
            # pydantic's validator without its adapter takes half the time, which matters for large batches.
            values: dict[str, Any] = self._args.validator.validate_python(args)
        except ValueError as error:
            raise InvalidArgs(self._explain("args", "do", error)) from error
        return values

    def dump(self, values: Mapping[str, Any]) -> str:
        """Validated args as JSON text. Raises InvalidArgs where JSON has no form for a value, or it is too deep."""
        try:
            text = dump_json(self._args, values)
            if len(text) > 2 * MAX_DEPTH:  # each level takes two brackets
                check_depth(text)
        except ValueError as error:
            raise InvalidArgs(f"args of kind {self.kind!r} cannot be written as JSON: {error}") from error
        return text

    def encode(self, args: Mapping[str, Any]) -> str:
        """Args as JSON text, validated. Raises InvalidArgs."""
        return self.dump(self.validate(args))

    def encode_many(self, many: Iterable[Mapping[str, Any]], check: Callable[..., object] | None = None) -> list[str]:
        """Like `encode`, for many; `check` is called with the validated args of each.

        The common case makes no calls of ours per item, because there may be tens of thousands.
        """
        validate, write = self._args.validator.validate_python, self._args.serializer.to_json
        texts: list[str] = []
        for args in many:
            try:
                values = validate(args)
                text = write(values).decode()
                plain = len(text) <= 2 * MAX_DEPTH and not ("null" in text or "NaN" in text or "Infinity" in text)
            except ValueError:
                plain = False
            if not plain:
                values = self.validate(args)
                text = self.dump(values)
            if check is not None:
                check(**values)
            texts.append(text)
        return texts

    def decode(self, text: str) -> dict[str, Any]:
        """Args from JSON text, as the values that the handler's annotations ask for. Raises InvalidArgs, Sealed."""
        try:
            return self._stored_args.validate_json(text)
        except ValueError as error:  # pydantic's
            if is_sealed(text):
                raise Sealed(_unreadable("args", self.kind)) from error
            refused = InvalidArgs(self._explain("args", "do", error))
            refused.of_claimed_job = True
            raise refused from error

    @property
    def signature(self) -> dict[str, Any]:
        """For the database: each parameter with whether it must be given, and whether others are ignored."""
        parameters = self._signature.parameters.values()
        takes = {parameter.name: parameter.default is parameter.empty for parameter in parameters}
        return {"takes": takes, "extra": self._ignores_extra}

    @cached_property
    def fingerprint(self) -> str:
        """Equal for handlers that take the same args, as far as we can tell."""
        described = json.dumps([self.signature, self._schema()], sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()[:12]

    def _schema(self) -> Any:
        try:
            return self._stored_args.json_schema()
        except Exception:  # noqa: BLE001 - a type of the user's own may have no schema, or raise what it likes
            hints = inspect.get_annotations(self._handler).items()
            named = [(name, _ADDRESS.sub("", repr(hint))) for name, hint in hints if name not in (CONTEXT, "return")]
            return sorted(named)

    def encode_result(self, value: Any) -> str | None:
        """A handler's return value as JSON text; None stays None. Raises InvalidResult."""
        if value is None:
            return None
        from pydantic import ValidationError

        try:
            text = dump_json(self._result, self._result.validate_python(value))
        except ValidationError as error:
            raise InvalidResult(self._explain("the result", "does", error)) from error
        except ValueError as error:
            raise InvalidResult(f"the result of kind {self.kind!r} cannot be written as JSON: {error}") from error
        if has_zero_character(text):
            raise InvalidResult(f"the result of kind {self.kind!r} holds a zero character: PostgreSQL cannot store it")
        return text

    def decode_result(self, value: Any) -> Any:
        """A stored result as the value that the handler's annotation promises. Raises Sealed."""
        if value is None:
            return None
        if is_sealed_value(value):
            raise Sealed(_unreadable("the result", self.kind))
        from pydantic import ValidationError

        try:
            # As JSON, not as Python: otherwise "1.50" and "2026-01-31" do not become Decimal and date in every mode.
            return self._result.validate_json(json.dumps(value))
        except ValidationError as error:
            raise InvalidResult(self._explain("the result", "does", error)) from error

    @cached_property
    def _hints(self) -> dict[str, Any]:
        # The context is not one of the args, and its type may be imported for type checkers only.
        annotations = {name: hint for name, hint in inspect.get_annotations(self._handler).items() if name != CONTEXT}
        names = getattr(inspect.unwrap(self._handler), "__globals__", {})
        try:
            return get_type_hints(
                _Annotated(annotations), globalns=names, localns=self._local_names, include_extras=True
            )
        except NameError as error:
            raise TypeError(
                f"an annotation of handler {self._handler.__qualname__} cannot be read: {error}. Args are validated by "
                "the annotations, so their types must be importable when jobs are enqueued"
            ) from error

    @cached_property
    def _args(self) -> "TypeAdapter[dict[str, Any]]":
        return self._by_name("forbid")

    @cached_property
    def _stored_args(self) -> "TypeAdapter[dict[str, Any]]":
        return self._by_name("ignore") if self._ignores_extra else self._args

    def _by_name(self, extra: Literal["forbid", "ignore"]) -> "TypeAdapter[dict[str, Any]]":
        from pydantic import ConfigDict

        fields: dict[str, Any] = {}
        for parameter in self._signature.parameters.values():
            hint = self._hints.get(parameter.name, Any)
            fields[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
        # From typing_extensions, as pydantic demands before Python 3.12. Any, because the fields are known only at run
        # time.
        make_typed_dict: Any = TypedDict
        model = make_typed_dict("Args", fields)
        model.__pydantic_config__ = ConfigDict(extra=extra)
        return self._adapter(model)

    @cached_property
    def _result(self) -> "TypeAdapter[Any]":
        return self._adapter(_kept(self._hints.get("return", Any)))

    def _adapter(self, annotation: Any) -> "TypeAdapter[Any]":
        from pydantic import PydanticUserError, TypeAdapter

        try:
            return TypeAdapter(annotation)
        except PydanticUserError as error:
            raise TypeError(
                f"an annotation of handler {self._handler.__qualname__} has no form in JSON: {error.message}"
            ) from error

    def _explain(self, what: str, verb: str, error: ValueError) -> str:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            return f"{what} of kind {self.kind!r} {verb} not fit its handler: {error}"
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or what}: {problem['msg']}"
            + (f" (got {problem['input']!r:.80})" if problem["type"] != "missing" else "")
            for problem in error.errors(include_url=False)[:10]
        )
        return f"{what} of kind {self.kind!r} {verb} not fit its handler: {problems}"


def _kept(hint: Any) -> Any:
    """The type of the result itself, without the `WithErrors` around it."""
    if hint is WithErrors:
        return Any
    if get_origin(hint) is WithErrors:
        return get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_kept(one) for one in get_args(hint))]  # noqa: UP007 - of a tuple
    return hint


class _Annotated:
    """An object for `get_type_hints` to read."""

    def __init__(self, annotations: dict[str, Any]) -> None:
        self.__annotations__ = annotations


def _unreadable(what: str, kind: str) -> str:
    return (
        f"{what} of kind {kind!r} cannot be read here: encrypted with a key that this program does not have. Add it "
        "to $FENCELINE_KEYS, or to the codec of the app"
    )


def encode_plain(kind: str, args: Mapping[str, Any] | None) -> str:
    """Args of a kind whose handler is not known here: anything that pydantic can write as JSON."""
    return _encode(f"args of kind {kind!r}", {} if args is None else args)


def encode_payload(signal: str, payload: Any) -> str:
    """The payload of a signal as JSON text. Raises InvalidArgs."""
    return _encode(f"the payload of signal {signal!r}", payload)


def _encode(what: str, value: Any) -> str:
    try:
        text = to_json(value)
        check_depth(text)
    except ValueError as error:
        raise InvalidArgs(f"{what} cannot be written as JSON: {error}") from error
    return text


def to_json(value: Any) -> str:
    """Any value as JSON text. Raises ValueError."""
    from pydantic_core import to_json as write

    text = write(value).decode()
    if "NaN" in text or "Infinity" in text:
        json.loads(text, parse_constant=_refuse_constant)
    _refuse_long_numbers(text)
    return text


def check_depth(text: str) -> None:
    """Refuse JSON so deep that parsers in other languages fail on it. Raises ValueError."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    level = [json.loads(text)]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _items(value)]
    if any(isinstance(value, dict | list) for value in level):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def dump_json(adapter: "TypeAdapter[Any]", value: Any) -> str:
    """A validated value as JSON text. Raises ValueError."""
    # pydantic's serializer raises ValueError for cycles, unknown types and half a surrogate pair. But NaN and the
    # infinities become null or invalid JSON, depending on the type that holds them.
    text = adapter.serializer.to_json(value).decode()
    if "null" in text or "NaN" in text or "Infinity" in text:
        _refuse_non_finite(adapter.dump_python(value))
    _refuse_long_numbers(text)
    return text


def _refuse_long_numbers(text: str) -> None:
    """Python itself cannot read such a number back: a single one would break every list it is in."""
    if len(text) > MAX_DIGITS and _LONG_NUMBER.search(text):
        try:
            json.loads(text)  # the digits may be in a string, which is fine
        except ValueError as error:
            raise ValueError(f"a number has more than {MAX_DIGITS} digits: use a string") from error


def _refuse_non_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        _refuse_constant(str(value))
    for inner in _items(value):
        _refuse_non_finite(inner)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}: use None, or a string")


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple | set | frozenset) else ()
