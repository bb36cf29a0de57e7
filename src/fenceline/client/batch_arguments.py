"""A batch handler's signature as the contract for the args of its jobs: the type in its `list[BatchItem[…]]`.

The fields of that type are the args of a job. So they are stored by name like those of any other kind, and callers who
enqueue by name (HTTP, the command line, SQL) need not know that the jobs run together.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from fenceline.client.arguments import Arguments
from fenceline.errors import InvalidArgs

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: It belongs to a layer above, so it is recognised by name, as the contexts are.
ITEM = ("fenceline.context.batch_item", "BatchItem")


class BatchArguments(Arguments):
    """What one job of a batch kind takes; `validate` and `decode` return a value of the items' type."""

    def __init__(
        self,
        kind: str,
        handler: Callable[..., Any],
        local_names: Mapping[str, Any] | None = None,
        *,
        ignores_extra: bool = False,
    ) -> None:
        """Raises TypeError if the handler does not take a list of items."""
        super().__init__(kind, handler, local_names, ignores_extra=ignores_extra)
        names = list(self._signature.parameters)
        if len(names) != 1:
            raise TypeError(
                f"batch handler {handler.__qualname__} takes {', '.join(names) or 'nothing'}: it takes one parameter, "
                "the list of its jobs (jobs: list[BatchItem[Event]]), and before it `ctx`, if it wants one"
            )
        #: The name of the handler's list of jobs.
        self.parameter = names[0]
        self._item = self._item_type()

    def _item_type(self) -> Any:
        hint = self._hints.get(self.parameter, Any)
        [item] = get_args(hint) if get_origin(hint) is list else [hint]
        origin = get_origin(item) or item
        if hint is Any:
            return Any
        if get_origin(hint) is not list or (origin.__module__, origin.__qualname__) != ITEM:
            raise TypeError(
                f"batch handler {self._handler.__qualname__} takes {self.parameter}: {hint}, which is not a list of "
                "its jobs: use list[BatchItem[Event]]"
            )
        [args] = get_args(item) or [Any]
        if not _has_names(args):
            raise TypeError(
                f"batch handler {self._handler.__qualname__} takes BatchItem[{args}], but args are stored by name: use "
                "a dataclass, a pydantic model, a TypedDict or dict[str, …]"
            )
        return args

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """One value of the items' type, or its fields by name."""
        if not args:
            return kwargs
        if len(args) > 1 or kwargs:
            raise InvalidArgs(
                f"args of kind {self.kind!r} do not fit its handler: give one value, or its fields by name"
            )
        return args[0]

    def validate(self, args: Any) -> Any:
        self._refuse_unknown(args)
        return super().validate(args)

    def encode_many(self, many: Iterable[Any], check: Callable[..., object] | None = None) -> list[str]:  # noqa: ARG002 - refused
        return [self.encode(args) for args in many]

    def decode(self, text: str) -> Any:
        value = super().decode(text)
        if not self._ignores_extra and self._fields is not None:
            self._refuse_unknown(json.loads(text), of_claimed_job=True)
        return value

    @property
    def signature(self) -> dict[str, Any]:
        return {"takes": self._fields or {}, "extra": self._ignores_extra or self._fields is None}

    @cached_property
    def _fields(self) -> dict[str, bool] | None:
        """The fields by the names they are stored under, and whether each is required. None: any fields."""
        item = get_origin(self._item) or self._item
        if dataclasses.is_dataclass(item):
            return {field.name: _is_required(field) for field in dataclasses.fields(item) if field.init}
        if _is_typed_dict(item):
            return {name: name in item.__required_keys__ for name in item.__annotations__}
        if hasattr(item, "model_fields") and item.model_config.get("extra") != "allow":
            return {field.alias or name: field.is_required() for name, field in item.model_fields.items()}
        return None

    def _refuse_unknown(self, args: Any, *, of_claimed_job: bool = False) -> None:
        """Unknown names are dropped when a dataclass is built, so a misspelled one would be lost silently."""
        if not isinstance(args, Mapping) or self._fields is None:
            return
        unknown = args.keys() - self._fields.keys()
        if unknown and not hasattr(self._item, "model_fields"):  # a pydantic model decides itself
            refused = InvalidArgs(
                f"args of kind {self.kind!r} do not fit its handler: {', '.join(sorted(unknown))}: not taken"
            )
            refused.of_claimed_job = of_claimed_job
            raise refused

    def _by_name(self, extra: Literal["forbid", "ignore"]) -> "TypeAdapter[Any]":  # noqa: ARG002 - see `_refuse_unknown`
        return self._adapter(dict[str, Any] if self._item is Any else self._item)

    @cached_property
    def _result(self) -> "TypeAdapter[Any]":
        """The result of one item: the handler itself returns nothing."""
        return self._adapter(Any)


def _has_names(args: Any) -> bool:
    origin = get_origin(args) or args
    return (
        args is Any
        or dataclasses.is_dataclass(origin)
        or _is_typed_dict(origin)
        or hasattr(origin, "model_fields")
        or (isinstance(origin, type) and issubclass(origin, Mapping))
    )


def _is_typed_dict(item: Any) -> bool:
    return hasattr(item, "__required_keys__")  # of typing or typing_extensions


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
