"""Tasks of a Django project: what Celery's own workers do there besides running them."""

import os
from collections.abc import Callable
from typing import Any


def is_project() -> bool:
    """Whether Django is set up by somebody, or can be: modules of Celery's apps name the settings first."""
    return "DJANGO_SETTINGS_MODULE" in os.environ


def set_up() -> None:
    """Workers import nothing of the project before the app, so Django is set up here."""
    import django  # noqa: PLC0415 - only where it is used
    from django.apps import apps  # noqa: PLC0415 - as above

    if not apps.ready:
        django.setup()


def with_fresh_connections(ctx: Any, call_next: Callable[[], Any]) -> Any:
    """Middleware: without it one lost connection would fail every task of its thread, for good."""
    from fenceline.django.django_app import with_fresh_connections as run  # noqa: PLC0415 - as above

    return run(ctx, call_next)
