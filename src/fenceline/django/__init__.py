"""Fenceline in a Django project: `INSTALLED_APPS += ["fenceline.django"]`. See docs/guides/django.md.

`app` is the project's `Fenceline`, made from `settings.FENCELINE` when it is first used:

    from fenceline.django import app

    @app.job
    def send_receipt(order_id: int) -> None: ...

`django_app.py` is that app, `database.py` its way to the database: Django's own connections. `apps.py` finds the jobs
of a project, `worker_app.py` is where worker processes find the project. `tasks.py` is a backend for Django's tasks,
`models.py` and `admin.py` are what people look at. No rule about jobs is here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenceline.django.django_app import DjangoFenceline

    app: DjangoFenceline

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Not before: Django imports this package while its settings are being read.
    from fenceline.django.django_app import DjangoFenceline  # noqa: PLC0415 - as above
    from fenceline.django.settings import read_settings  # noqa: PLC0415 - as above

    made = globals()["app"] = DjangoFenceline(read_settings())
    return made
