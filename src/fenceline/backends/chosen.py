"""Which delivery an app has: by argument, else `$FENCELINE_DELIVERY`, else PostgreSQL."""

import os
from dataclasses import dataclass

from fenceline.backends.arq import URL_VARIABLE, ArqBackend
from fenceline.backends.contract import Backend, BackendFactory, BackendMisconfigured

DELIVERY_VARIABLE = "FENCELINE_DELIVERY"


@dataclass(frozen=True, slots=True)
class ChosenDelivery:
    """`name`: of the lanes that say nothing themselves. `make_backend`: for those that a backend delivers, if any."""

    name: str
    make_backend: BackendFactory | None = None

    def backend(self) -> Backend:
        """A backend of one's own. Raises BackendMisconfigured where there is none."""
        if self.make_backend is None:
            raise BackendMisconfigured(f"delivery {self.name} has no backend to send messages with")
        return self.make_backend()


def choose_delivery(given: str | BackendFactory | None) -> ChosenDelivery:
    """Raises BackendMisconfigured, with what is wrong in one line."""
    if callable(given):
        return ChosenDelivery(given().name, given)
    match given or os.environ.get(DELIVERY_VARIABLE) or "postgres":
        case "postgres" if URL_VARIABLE not in os.environ:
            return ChosenDelivery("postgres")
        case "postgres" | "arq" as name:
            ArqBackend()  # what is wrong with its settings is said now
            return ChosenDelivery(name, ArqBackend)
        case "inline":
            return ChosenDelivery("inline")
        case unknown:
            raise BackendMisconfigured(f"delivery {unknown!r} is unknown: use postgres, arq or inline, or a backend")
