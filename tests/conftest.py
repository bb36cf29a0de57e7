"""A real PostgreSQL for every test, and a database of its own.

The server is `$FENCELINE_TEST_DSN` (its role must be a superuser), else one embedded PostgreSQL that all
pytest workers share. Every worker migrates one template database; every test that asks for `database` gets a
clone of it.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest
import pytest_timeout
from hypothesis import HealthCheck, settings
from tests.support import patience
from tests.support.figures import Figures, print_table

from fenceline.database.embedded import EmbeddedPostgres
from fenceline.testing.databases import dsn_of, migrate_database, short_and_quick

# Not test modules by name, but full of assertions that should explain themselves.
pytest.register_assert_rewrite(
    "tests.sql.machine",
    "tests.sql.machine_base",
    "tests.sql.machine_operators",
    "tests.sql.observed",
    "tests.sql.sessions",
    "tests.sql.claim_scenarios",
    "tests.sql.context_scenarios",
    "tests.sql.end_scenarios",
    "tests.sql.gate_scenarios",
    "tests.sql.lock_scenarios",
    "tests.sql.open_scenarios",
    "tests.sql.schedule_scenarios",
    "tests.sql.upkeep_scenarios",
)

# How long an example takes is a matter of the machine.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

Connect = Callable[..., Awaitable[asyncpg.Connection]]

SERVER_FOLDER_VARIABLE = "FENCELINE_TEST_SERVER_FOLDER"


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of the shared server; the workers of xdist inherit the variable."""
    # A shell ignores Ctrl-C for what runs in the background, and the programs that tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="fenceline-test-", dir=short_and_quick())
        os.environ[SERVER_FOLDER_VARIABLE] = folder
        if "FENCELINE_TEST_DSN" not in os.environ:
            configure_server(Path(folder))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(SERVER_FOLDER_VARIABLE), ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # before fixtures, which wait for things too
def pytest_runtest_setup(item: pytest.Item) -> None:
    patience.begin_test(item)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Limit the end of a test that failed: pytest-timeout stops its clock there, and a fixture that hangs while it
    ends what the test started would hold up the whole run.
    """
    if isinstance(node, pytest.Item) and not node.config.getoption("usepdb"):
        settings = pytest_timeout._get_item_settings(node)
        node.ihook.pytest_timeout_set_timer(item=node, settings=settings)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ended = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    if timed := [report for report in ended if isinstance(report, pytest.TestReport) and "timing" in report.keywords]:
        print_table(timed)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """What a test marked `timing` has measured, for the table of `make timing`."""
    return Figures(request.node)


def configure_server(folder: Path) -> None:
    """Set up the shared server before anybody uses it; leaving stops it, so that all of it takes effect."""
    with EmbeddedPostgres(folder) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        # Nothing here outlives the run, and a database comes and goes with every test.
        connection.execute("alter system set fsync = off")
        connection.execute("alter system set max_connections = 300")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The DSN of the server's `postgres` database, as a superuser."""
    given = os.environ.get("FENCELINE_TEST_DSN")
    if given:
        yield given
        return
    with EmbeddedPostgres(Path(os.environ[SERVER_FOLDER_VARIABLE])) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def administrator(server: str) -> Iterator[psycopg.Connection]:
    """A session that creates and drops databases; blocking, for tests without an event loop."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(server: str, administrator: psycopg.Connection) -> Iterator[str]:
    """The name of a migrated database that nobody can connect to: it must be idle to be cloned."""
    name = f"fenceline_template_{uuid4().hex[:12]}"
    create_database(administrator, name)
    # In a thread of its own, so that no test inherits anything of this event loop.
    with ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(asyncio.run, migrate_database(dsn_of(server, name))).result()
    administrator.execute(f'alter database "{name}" with allow_connections false')
    yield name
    drop_database(administrator, name)


@pytest.fixture
def empty_database(server: str, administrator: psycopg.Connection) -> Iterator[str]:
    """The DSN of a fresh database without Fenceline's schema.

    It is gone before the fixtures asked for earlier end, which may then drop the roles that it granted to.
    """
    name = f"fenceline_test_{uuid4().hex[:12]}"
    create_database(administrator, name)
    yield dsn_of(server, name)
    drop_database(administrator, name)


@pytest.fixture
def database(server: str, administrator: psycopg.Connection, template: str) -> Iterator[str]:
    """The DSN of a fresh, migrated database."""
    name = f"fenceline_test_{uuid4().hex[:12]}"
    # The default strategy: from PostgreSQL 15 on WAL_LOG, measured at less than half the time of FILE_COPY.
    create_database(administrator, name, template=template)
    yield dsn_of(server, name)
    drop_database(administrator, name)


@pytest.fixture
async def connect(database: str) -> AsyncIterator[Connect]:
    """Open asyncpg connections to `database`, closed when the test ends: `connection = await connect()`."""
    connections: list[asyncpg.Connection] = []

    async def open_connection(**options: Any) -> asyncpg.Connection:
        connection: asyncpg.Connection = await asyncpg.connect(database, **options)
        connections.append(connection)
        return connection

    yield open_connection
    for connection in connections:
        # A test may leave a statement waiting for a lock that another of its connections holds.
        connection.terminate()


def create_database(administrator: psycopg.Connection, name: str, *, template: str = "template0") -> None:
    administrator.execute(f'create database "{name}" template "{template}"')


def drop_database(administrator: psycopg.Connection, name: str) -> None:
    administrator.execute(f'drop database "{name}" with (force)')
