"""What answers look like: a view takes its fields from a record of `model/`, and adds only what is special to HTTP.

Views describe answers in the OpenAPI document. Answers themselves are JSON text from the database; tests compare both.
"""

import types
from collections.abc import Callable
from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime, BaseModel, ConfigDict, create_model


class View(BaseModel):
    """An answer with exactly these fields, always all of them."""

    model_config = ConfigDict(extra="forbid")


V = TypeVar("V", bound=View)


def examples(*examples: dict[str, Any], title: str | None = None) -> ConfigDict:
    """Examples of a body or a view for the OpenAPI document; `title`: its title there, if not the class name."""
    extra = ConfigDict(json_schema_extra={"examples": list(examples)})
    return extra if title is None else ConfigDict(title=title, **extra)


def shows(record: type, *, without: tuple[str, ...] = (), may_lack: bool = False) -> Callable[[type[V]], type[V]]:
    """Give a view those fields of a record that it does not define itself.

    All are required; with `may_lack`, those that have a default in the record are not.
    """
    hints = get_type_hints(record)

    def add(view: type[V]) -> type[V]:
        added: dict[str, Any] = {
            field.name: (_aware(hints[field.name]), field.default if may_lack and field.default is not MISSING else ...)
            for field in fields(record)
            if field.name not in view.model_fields and field.name not in without
        }
        return create_model(view.__name__, __base__=view, __module__=view.__module__, __doc__=view.__doc__, **added)

    return add


@cache
def list_of(view: type[View], name: str | None = None, *, has_pages: bool = True) -> type[View]:
    """A list of views, such as `StepList` for `StepView`. `has_pages` false: it never has a next page."""
    name = name or view.__name__.replace("View", "List")
    fields: dict[str, Any] = {
        "items": (types.GenericAlias(list, (view,)), ...),
        "next_cursor": (str | None if has_pages else None, ...),
    }
    return create_model(name, __base__=View, __module__=view.__module__, **fields)


def _aware(hint: Any) -> Any:
    """Times in answers have a time zone."""
    if hint is datetime:
        return AwareDatetime
    if get_origin(hint) in {Union, types.UnionType}:
        return Union[tuple(_aware(part) for part in get_args(hint))]  # noqa: UP007 - of parts that are values here
    return hint
