"""`settings.FENCELINE`, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

#: Passed on to `Fenceline(…)`, in lower case.
_PASSED_ON = ("POOL_SIZE", "TRACING", "CREDENTIALS", "CODEC", "ACTOR", "DELIVERY")


@dataclass(frozen=True, slots=True, kw_only=True)
class DjangoSettings:
    database: str = "default"  # an alias of settings.DATABASES
    migrate: bool = False  # whether `manage.py migrate` brings Fenceline's schema up to date too
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings() -> DjangoSettings:
    """Raises ImproperlyConfigured."""
    given = dict(getattr(settings, "FENCELINE", {}))
    database = given.pop("DATABASE", "default")
    migrate = bool(given.pop("MIGRATE", False))
    unknown = sorted(given.keys() - set(_PASSED_ON))
    if unknown:
        known = ", ".join(sorted(("DATABASE", "MIGRATE", *_PASSED_ON)))
        raise ImproperlyConfigured(f"settings.FENCELINE has unknown keys {', '.join(unknown)}: known are {known}")
    if database not in settings.DATABASES:
        raise ImproperlyConfigured(f"settings.FENCELINE names database {database!r}, which settings.DATABASES lacks")
    return DjangoSettings(
        database=database, migrate=migrate, options={name.lower(): value for name, value in given.items()}
    )
