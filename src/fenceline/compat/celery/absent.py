"""Names that Celery has and Fenceline lacks: using one raises Unsupported, with what to do instead."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from fenceline.errors import Unsupported


def refuse_names(owner: str, instead: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """A module's `__getattr__` that raises Unsupported for these names, AttributeError for others."""

    def refuse(name: str) -> NoReturn:
        if name in instead:
            raise Unsupported(f"{owner} has no {name}: {instead[name]}")
        raise AttributeError(f"{owner!r} has no attribute {name!r}")

    return refuse


def absent(name: str, instead: str) -> Callable[..., NoReturn]:
    """A method that raises Unsupported when it is called."""

    def refuse(*_args: Any, **_options: Any) -> NoReturn:
        raise Unsupported(f"{name}() is not there: {instead}")

    return refuse
