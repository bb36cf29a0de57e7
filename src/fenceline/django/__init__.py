"""Fenceline in a Django project: `INSTALLED_APPS += ["fenceline.django"]`. See docs/guides/django.md.

`app` is the project's `Fenceline`, created from `settings.FENCELINE` when it is first used:

    from fenceline.django import app

    @app.job
    def send_receipt(order_id: int) -> None: ...

`django_app.py` is that app, and `database.py` lets it use Django's own connections. `apps.py` finds the jobs of a
project, `worker_app.py` is what worker processes import. `tasks.py` is a backend for Django's tasks, `models.py` and
`admin.py` show the queue to people. No rule about jobs is here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fenceline.django.django_app import DjangoFenceline

    app: DjangoFenceline

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Not at import time: Django imports this package while it reads its settings.
    from fenceline.django.django_app import DjangoFenceline  # noqa: PLC0415 - as above
    from fenceline.django.settings import read_settings  # noqa: PLC0415 - as above

    made = globals()["app"] = DjangoFenceline(read_settings())
    return made
