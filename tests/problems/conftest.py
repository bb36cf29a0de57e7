import pytest
from tests.conftest import Connect
from tests.sql.queue import Queue, open_queue


@pytest.fixture
async def queue(connect: Connect) -> Queue:
    """A fresh database with a worker whose lease is a day, so that a problem may move the clock."""
    return await open_queue(await connect())
