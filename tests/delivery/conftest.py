import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.delivery.redis_server import RedisServer


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    folder = Path(tempfile.mkdtemp(prefix="fenceline-redis-", dir="/tmp"))  # a socket's path must be short
    server = RedisServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture
def redis_url(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Redis that apps of this test find by themselves."""
    monkeypatch.setenv("FENCELINE_REDIS_URL", redis.url)
    return redis.url
