"""Which delivery an app has: by argument, else `$FENCELINE_DELIVERY`, else PostgreSQL."""

import os
import re
from dataclasses import dataclass

from fenceline.backends.arq import URL_VARIABLE, ArqBackend
from fenceline.backends.contract import Backend, BackendFactory, BackendMisconfigured

DELIVERY_VARIABLE = "FENCELINE_DELIVERY"
_NAME = re.compile("[a-z0-9_.-]{1,64}")  # of deliveries, as of lanes


@dataclass(frozen=True, slots=True)
class ChosenDelivery:
    """`name`: the delivery of lanes that name none. `make_backend`: for lanes that a backend delivers, if any."""

    name: str
    make_backend: BackendFactory | None = None

    def backend(self) -> Backend:
        """A new backend. Raises BackendMisconfigured where there is none."""
        if self.make_backend is None:
            raise BackendMisconfigured(f"delivery {self.name} has no backend to send messages with")
        return self.make_backend()


def choose_delivery(given: str | BackendFactory | None) -> ChosenDelivery:
    """Raises BackendMisconfigured, with what is wrong in one line."""
    if callable(given):
        return ChosenDelivery(_name_of(given()), given)
    match given or os.environ.get(DELIVERY_VARIABLE) or "postgres":
        case "postgres" if not os.environ.get(URL_VARIABLE):
            return ChosenDelivery("postgres")
        case "postgres" | "arq" as name:
            ArqBackend()  # raises now if its settings are wrong
            return ChosenDelivery(name, ArqBackend)
        case "inline":
            return ChosenDelivery("inline")
        case unknown:
            raise BackendMisconfigured(
                f"delivery {unknown!r} is unknown: use postgres, arq or inline, or a backend's class"
            )


def _name_of(backend: object) -> str:
    name = getattr(backend, "name", None)
    if not isinstance(name, str) or not callable(getattr(backend, "enqueue", None)):
        raise BackendMisconfigured(f"delivery: {backend!r} is not a backend (fenceline.backends.contract)")
    if not _NAME.fullmatch(name) or name in ("postgres", "inline"):
        raise BackendMisconfigured(
            f'a backend cannot be called {name!r}: use 1 to 64 of a-z, 0-9, "_", "." and "-", not postgres or inline'
        )
    return name
