"""Where worker processes find the project's app: `fenceline worker fenceline.django.worker_app:app`.

They import nothing of the project before, so Django is set up here; `$DJANGO_SETTINGS_MODULE` says with what.
"""

import django
from django.apps import apps

if not apps.ready:
    django.setup()

from fenceline.django import app

__all__ = ["app"]
