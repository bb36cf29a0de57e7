import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
import pytest
from tests.worker.fleet import Fleet
from tests.worker.in_process_worker import running

from fenceline import Fenceline

NAME = "tests.context.sample:app"

Work = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def tables(database: str) -> str:
    """Tables of an application, beside the queue's; the DSN."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table public.ran (job text, what text, at timestamptz default clock_timestamp())")
        connection.execute("create table public.paid (job text)")
    return database


@pytest.fixture
async def app(tables: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fenceline]:
    """The app of sample.py, as a fresh import in this process and in others finds it."""
    monkeypatch.setenv("FENCELINE_DSN", tables)
    from tests.context import sample  # noqa: PLC0415 - it reads the variable when it is imported

    made: Fenceline = importlib.reload(sample).app
    yield made
    await made.close()


@pytest.fixture
def work(app: Fenceline) -> Work:
    """`async with work():` is a worker with the app."""
    return lambda **settings: running(app, import_name=NAME, isolated=1, **settings)


@pytest.fixture
async def fleet(tables: str, tmp_path: Any, connect: Any) -> AsyncIterator[Fleet]:
    fleet = Fleet(tables, tmp_path, await connect())
    yield fleet
    fleet.close()
