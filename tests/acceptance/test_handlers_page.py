"""The code of docs/guides/handlers.md runs, and does what the page says."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.patience import seconds_left
from tests.worker.in_process_worker import ended, running

from fenceline import Fenceline

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "handlers.md"


@pytest.fixture
def page(database: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the page's code defines."""
    monkeypatch.setenv("FENCELINE_DSN", database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table booking (account integer, amount integer)")
        connection.execute("create table crawled (job text, pages integer)")
    names: dict[str, Any] = {"__name__": "page"}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)), names)  # noqa: S102 - our own page
    return names


async def test_the_page_is_true(page: dict[str, Any], database: str) -> None:
    app: Fenceline = page["app"]
    async with running(app):
        record = await ended(await app.enqueue("inventory", {"shelves": ["a", "closed", "broken"]}))
        assert (record.status, record.result) == ("succeeded_with_errors", 3)
        assert record.errors == [{"item": "broken", "error": "nothing to count", "phase": "count"}]
        job = await app.enqueue("split", {"chapters": ["x", "y"]})
        [last] = await job.result(timeout=seconds_left())
        assert (await ended(app.jobs.handle(last))).parent == job.id
        crawl = await app.enqueue("crawl", {"urls": ["a", "b"]})
        assert await crawl.result(timeout=seconds_left()) == 1
        assert [step.name for step in await crawl.steps()] == ["fetch", "fetch#2", "index"]
        for kind, args, result in (
            ("export", {"rows": 1500}, 1500),
            ("book", {"account": 1, "amount": 5}, 5),
            ("book_blocking", {"account": 1, "amount": 6}, 6),
            ("poll", {"state": "ready"}, "ready"),
            ("grind", {"rounds": 3}, 3),
        ):
            assert await (await app.enqueue(kind, args)).result(timeout=seconds_left()) == result, kind
        waiting = [await app.enqueue("poll", {"state": state}, max_attempts=1) for state in ("busy", "early")]
        assert (await ended(waiting[0])).status == "failed"
    with psycopg.connect(database) as connection:
        assert connection.execute("select sum(amount), count(*) from booking").fetchone() == (11, 2)
        assert connection.execute("select count(*), sum(pages) from crawled").fetchone() == (3, 3)
