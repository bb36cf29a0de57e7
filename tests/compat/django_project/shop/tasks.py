from django.db import connection

from fenceline.compat.celery import shared_task


@shared_task
def backend_pid() -> int:
    """Which connection this thread has."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])
