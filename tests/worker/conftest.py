from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conftest import Connect
from tests.worker.fleet import Fleet


@pytest.fixture
async def fleet(database: str, tmp_path: Path, connect: Connect) -> AsyncIterator[Fleet]:
    """Worker processes on the test's database; they are killed when the test ends."""
    fleet = Fleet(database, tmp_path, await connect())
    yield fleet
    fleet.close()
