"""Tables in a folder of the test's own, and the API."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fenceline.testing import TestedApp
from table_maintenance.api import web
from table_maintenance.catalog import make_sample_table


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `sales.orders` is, with a dozen small files."""
    monkeypatch.setenv("WAREHOUSE", str(tmp_path))
    make_sample_table("sales", "orders")
    return tmp_path


@pytest.fixture
def client(fenceline_app: TestedApp, warehouse: Path) -> Iterator[TestClient]:
    with TestClient(web) as client:
        yield client


@pytest.fixture
def commits_blocked(warehouse: Path) -> Callable[[], AbstractContextManager[None]]:
    """Tables can be read, but nobody commits: an action hangs in a call that nothing interrupts."""

    @contextmanager
    def blocked() -> Iterator[None]:
        connection = sqlite3.connect(warehouse / "catalog.db", isolation_level=None)
        try:
            connection.execute("begin immediate")
            yield
        finally:
            connection.close()

    return blocked
