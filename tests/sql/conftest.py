from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from tests.conftest import Connect
from tests.sql.queue import Queue, open_queue


@pytest.fixture
def clone_database(server: str, administrator: psycopg.Connection, template: str) -> Iterator[Callable[[], str]]:
    """Make migrated databases, as many as a test asks for: `dsn = clone_database()`."""
    names: list[str] = []

    def clone() -> str:
        names.append(f"fenceline_test_{uuid4().hex[:12]}")
        administrator.execute(f'create database "{names[-1]}" template "{template}"'.encode())
        return urlunsplit(urlsplit(server)._replace(path=f"/{names[-1]}"))

    yield clone
    for name in names:
        administrator.execute(f'drop database "{name}" with (force)'.encode())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The matrix of the mutants that were caught: which broken function, by which test."""
    reports = terminalreporter.getreports("passed")
    rows = [tuple(value) for report in reports for key, value in report.user_properties if key == "mutant"]
    if not rows:
        return
    table = [("mutant", "in function", "caught by", "with"), *sorted(rows)]
    widths = [max(len(str(row[column])) for row in table) for column in range(4)]
    terminalreporter.section(f"{len(rows)} mutants caught")
    for row in table:
        terminalreporter.line("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)))


@pytest.fixture
async def queue(connect: Connect) -> Queue:
    """A fresh database with a worker whose lease is a day, so that a test may move the clock."""
    return await open_queue(await connect())
