"""A PostgreSQL-native job queue for jobs that matter: fenced, durable, watched by people.

The public names are those of `fenceline.public`. They are loaded with the first use of one, so that a program that
needs none of them, as `fenceline --help`, does not wait for the client, asyncio and all that they bring.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenceline.public import *  # noqa: F403 - all of them, by its __all__
    from fenceline.public import __all__ as __all__
else:  # not for type checkers, to whom it would say that any name exists

    def __getattr__(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = importlib.import_module("fenceline.public")
        globals().update({known: getattr(public, known) for known in (*public.__all__, "__all__")})
        # A submodule is there too once it is loaded: `import fenceline; fenceline.errors`.
        if name not in globals():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[name]


def __dir__() -> list[str]:
    return sorted(importlib.import_module("fenceline.public").__all__)
