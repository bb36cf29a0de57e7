from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fenceline import Fenceline
from fenceline.testing import TestedApp
from fenceline.testing.databases import Databases
from fenceline.testing.tested_app import under_test


@pytest.fixture(scope="session")
def databases(server: str) -> Iterator[Databases]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FENCELINE_TEST_DSN", server)
        with Databases(folder=Path("unused")) as databases:
            yield databases


@pytest.fixture
def dsn(databases: Databases) -> Iterator[str]:
    dsn = databases.create()
    yield dsn
    databases.drop(dsn)


@pytest.fixture
async def app(dsn: str) -> AsyncIterator[TestedApp]:
    with under_test(Fenceline(dsn), dsn) as app:
        yield app
        await app.close()
