"""examples/integrations/sqlalchemy_shop.py: sessions, sync and async."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session
from tests.integrations.examples import FOLDER, MAX_LINES, Shop, load_example, worker_in_thread
from tests.support.patience import seconds_left


@pytest.fixture
def example(database: str, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    shop.poll_never()
    example = load_example("sqlalchemy_shop", database, monkeypatch)
    yield example
    example.engine.dispose()
    example.queue.sync.close()


def place(example: Any, item: str, *, fails: bool = False) -> str:
    with Session(example.engine) as session, session.begin():
        job: str = example.place_order(session, item)
        if fails:
            raise KeyError(item)
    return job


async def place_async(example: Any, item: str, *, fails: bool = False) -> str:
    engine = example.make_async_engine()
    try:
        async with AsyncSession(engine) as session, session.begin():
            job: str = await example.place_order_async(session, item)
            if fails:
                raise KeyError(item)
        return job
    finally:
        await engine.dispose()
        await example.queue.close()


def test_a_rollback_leaves_no_job(example: Any, shop: Shop) -> None:
    with pytest.raises(KeyError):
        place(example, "tea", fails=True)
    with pytest.raises(KeyError):
        asyncio.run(place_async(example, "tea", fails=True))
    assert shop.counts == (0, 0)


def test_a_commit_wakes_the_worker(example: Any, shop: Shop) -> None:
    with worker_in_thread(example.queue):
        shop.until_a_worker_waits()
        first = place(example, "tea")
        assert example.queue.sync.jobs.handle(first).result(seconds_left()) == "receipt for tea"
        shop.until_a_worker_waits()
        second = asyncio.run(place_async(example, "coffee"))
        assert example.queue.sync.jobs.handle(second).result(seconds_left()) == "receipt for coffee"
    assert shop.ask("select string_agg(receipt, ', ' order by id) from shop_order") == (
        "receipt for tea, receipt for coffee"
    )


def test_killed_connections_heal(example: Any, shop: Shop) -> None:
    with worker_in_thread(example.queue):
        for item in ("tea", "coffee"):
            job = place(example, item)
            assert example.queue.sync.jobs.handle(job).result(seconds_left()) == f"receipt for {item}"
            assert shop.kill_connections() > 0


def test_it_runs_as_a_program(empty_database: str) -> None:
    done = subprocess.run(
        [sys.executable, "sqlalchemy_shop.py"],
        cwd=FOLDER,
        env={**os.environ, "DATABASE_URL": empty_database},
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "receipt for tea\nreceipt for coffee\n"), done.stderr


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path: Any) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES
