import asyncio
from collections.abc import Callable, Iterator

import pytest

from fenceline.compat.celery import Celery

Drain = Callable[[], int]


@pytest.fixture
def celery(database: str) -> Iterator[Celery]:
    """An app whose tasks are named after `main`, whatever module they are in."""
    app = Celery("tests", broker=database)
    yield app
    app.sync.close()


@pytest.fixture
def drain(celery: Celery) -> Drain:
    """Run everything that is claimable, in this process."""

    async def run() -> int:
        try:
            return await celery.drain()
        finally:
            await celery.close()

    return lambda: asyncio.run(run())
