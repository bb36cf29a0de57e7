"""Run by test_celery_django.py in this folder: a task uses the ORM, loses its connection, and has a new one."""

import asyncio

import psycopg

from fenceline import Fenceline
from fenceline.client.application import load_app

app = load_app("proj:celery_app")

from shop.tasks import backend_pid  # noqa: E402 - Django is set up now

PATIENCE_SECONDS = 3600.0  # the test that runs this has a limit


def run() -> tuple[int, int]:
    first = backend_pid.delay().get(PATIENCE_SECONDS)
    assert backend_pid.delay().get(PATIENCE_SECONDS) == first, "it is kept"
    with psycopg.connect(app.sync.dsn(), autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s, 10000)", (first,))
    backend_pid.delay().get(PATIENCE_SECONDS, propagate=False)  # the task that finds out fails
    return first, backend_pid.delay().get(PATIENCE_SECONDS)


async def main() -> None:
    assert isinstance(app, Fenceline)
    worker = asyncio.create_task(app.run_worker(threads=1, grace_seconds=1))
    first, last = await asyncio.to_thread(run)
    worker.cancel()
    await asyncio.wait([worker])
    await app.close()
    print("healed" if last != first else "the same")  # noqa: T201 - for the test


asyncio.run(main())
