"""What worker processes import to get the project's app: `fenceline worker fenceline.django.worker_app:app`.

They import this first, so it sets Django up, with the settings that `$DJANGO_SETTINGS_MODULE` names.
"""

import django
from django.apps import apps

if not apps.ready:
    django.setup()

from fenceline.django import app

__all__ = ["app"]
