"""A Django project as Celery's documentation has it, with the imports changed."""

from .celery import app as celery_app

__all__ = ("celery_app",)
