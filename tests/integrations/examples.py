"""The examples of examples/integrations, each as a module of its own on a test's database."""

import asyncio
import importlib.util
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from tests.support.patience import eventually_blocking

from fenceline import Fenceline

FOLDER = Path(__file__).parents[2] / "examples" / "integrations"
MAX_LINES = 100


def load_example(name: str, dsn: str, environment: pytest.MonkeyPatch) -> Any:
    """The module, loaded anew, and the table that its orders are in."""
    environment.setenv("DATABASE_URL", dsn)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    # Annotations of the example are read through its module.
    environment.setitem(__import__("sys").modules, name, module)
    spec.loader.exec_module(module)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table shop_order (id serial primary key, item text, receipt text)")
    return module


class Shop:
    """What the database says about the shop."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def ask(self, sql: str) -> Any:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            row = connection.execute(sql).fetchone()
        return None if row is None else row[0]

    @property
    def counts(self) -> tuple[int, int]:
        """Orders and jobs."""
        return self.ask("select count(*) from shop_order"), self.ask("select count(*) from fenceline.jobs")

    def poll_never(self) -> None:
        """From now on only a notification tells a worker of new jobs."""
        self.ask("update fenceline.lane set poll_interval_ms = 3600000 where name = 'default' returning name")

    def until_a_worker_waits(self) -> None:
        self.until(lambda: self.ask("select count(*) from fenceline.waiter where lane = 'default'") > 0)

    def until(self, condition: Callable[[], bool]) -> None:
        eventually_blocking(condition, "what the example is to bring about")

    def kill_connections(self) -> int:
        """Cut everybody off but ourselves; how many that were."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            rows = connection.execute(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
            ).fetchall()
        return len(rows)


@contextmanager
def worker_in_thread(app: Fenceline) -> Iterator[None]:
    """A worker beside blocking code."""
    loop = asyncio.new_event_loop()
    working: list[asyncio.Task[None]] = []
    begun = threading.Event()

    async def work() -> None:
        working.append(asyncio.create_task(app.run_worker(grace_seconds=1)))
        begun.set()
        await asyncio.wait(working)
        await app.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(working[0].cancel)
        thread.join()
        loop.close()
