"""`celery.utils`, of which modules with tasks import `log`."""
