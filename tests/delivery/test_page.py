"""The code of docs/guides/deliveries.md runs, and does what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest
from arq.worker import get_kwargs
from tests.delivery.redis_server import RedisServer
from tests.support.patience import eventually, seconds_left
from tests.worker.in_process_worker import running

from fenceline import Fenceline
from fenceline.testing.delivery import DeliveryConformance

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "deliveries.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def in_memory() -> Any:
    """The page's backend."""
    names: dict[str, Any] = {}
    [block] = [block for block in BLOCKS if "class InMemory" in block]
    exec("from fenceline import Fenceline\n" + block.replace("mine = ", "# "), names)  # noqa: S102 - our own page
    return names["InMemory"]


class TestInMemory(DeliveryConformance):
    delivery = in_memory()

    @pytest.fixture
    def dsn(self, database: str) -> str:
        return database


@pytest.fixture
def page(database: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the page's code defines."""
    monkeypatch.setenv("FENCELINE_DSN", database)
    names: dict[str, Any] = {"__name__": "page"}
    exec("\n".join(BLOCKS), names)  # noqa: S102 - our own page
    return names


async def test_the_page_is_true(page: dict[str, Any], redis: RedisServer) -> None:
    app: Fenceline = page["app"]
    async with running(app):
        job = await page["letter"].enqueue(to="ann")
        assert await job.result(timeout=seconds_left()) == "dear ann"
    [lane] = [lane for lane in await app.lanes.list() if lane.name == "mail"]
    assert lane.delivery == "arq"
    await app.close()
    settings: Any = get_kwargs(page["WorkerSettings"])
    assert [getattr(function, "name", None) for function in settings["functions"]] == [None, "fenceline"]
    assert settings["queue_name"] == "fenceline:mail"
    assert settings["redis_settings"].unix_socket_path == redis.url.removeprefix("unix://")


async def test_inline_does_what_the_page_says(page: dict[str, Any]) -> None:
    await page["check"]()
    await page["tests"].close()


async def test_the_name_that_a_backend_gives_is_kept(page: dict[str, Any]) -> None:
    mine: Fenceline = page["mine"]

    @mine.job(lane="own")
    async def work() -> None: ...

    await mine.lanes.create("own", delivery="memory")
    async with running(mine):
        job = await work.enqueue()
        await job.wait(timeout=seconds_left())
        record = await job.get()
        assert record.delivery == "memory"

        async def named() -> bool:
            return (await job.get()).backend_job_id != job.id

        await eventually(named, "its name is noted, after it was sent")
        assert str((await job.get()).backend_job_id).startswith("memory-")
