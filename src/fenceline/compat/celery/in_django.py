"""What Celery's workers do in a Django project besides running its tasks."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fenceline.compat.celery.app import Celery


def is_project() -> bool:
    """Whether Django is set up or can be: the module of a Celery app names the settings before it makes the app."""
    return "DJANGO_SETTINGS_MODULE" in os.environ


def set_up() -> None:
    """Set Django up: a worker imports the app first, and nothing else of the project."""
    import django  # noqa: PLC0415 - only where it is used
    from django.apps import apps  # noqa: PLC0415 - as above

    if not apps.ready:
        django.setup()


def refresh_connections(app: "Celery") -> None:
    """Close connections of Django's that are old or broken around every task."""
    from fenceline.django.django_app import with_fresh_connections  # noqa: PLC0415 - as above

    app.middleware(with_fresh_connections)
