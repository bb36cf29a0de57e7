"""The Django app: imports `jobs.py` of every installed app, and migrates the schema if the settings say so."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

TASKS_MODULE = "fenceline.django.tasks"


class FencelineConfig(AppConfig):
    name = "fenceline.django"
    label = "fenceline"
    verbose_name = "Fenceline"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from fenceline.django import app  # noqa: PLC0415 - needs the settings

        autodiscover_modules("jobs")
        if any(is_ours(backend) for backend in getattr(settings, "TASKS", {}).values()):
            import_module(TASKS_MODULE)  # so that workers know the kind of Django's tasks
        if app.settings.migrate:
            post_migrate.connect(migrate_too, sender=self)


def is_ours(backend: Mapping[str, Any]) -> bool:
    return str(backend.get("BACKEND", "")).startswith(f"{TASKS_MODULE}.")


def migrate_too(*, using: str, **_more: Any) -> None:
    """Runs after `manage.py migrate`, and when the test runner migrates."""
    from fenceline.django import app  # noqa: PLC0415 - as above

    if using == app.settings.database:
        app.sync.migrate()
        app.sync.close()
