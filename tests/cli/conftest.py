from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.cli.program import Hands, Program


@pytest.fixture
def fenceline(database: str, tmp_path: Path) -> Program:
    """The real program, with the test's database in its environment."""
    return Program(tmp_path, database)


@pytest.fixture
def hands(database: str) -> Iterator[Hands]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield Hands(connection)
