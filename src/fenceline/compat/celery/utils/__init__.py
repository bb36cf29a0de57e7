"""As `celery.utils`.

`log.py` has what modules of tasks import from there, loggers.
"""
