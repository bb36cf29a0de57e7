"""The plugin for pytest: fixtures for tests of programs that use Fenceline. See docs/guides/testing.md.

pytest loads this module in every project of an environment where Fenceline is installed, so it imports nothing until a
test asks for a fixture.
"""

import functools
import inspect
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fenceline.testing.databases import Databases
    from fenceline.testing.tested_app import TestedApp

# So that failed asserts in the suite for deliveries show their values.
pytest.register_assert_rewrite("fenceline.testing.delivery")

MARKER = "fenceline"
#: Holds the name of this run's folder for an embedded server. Workers of pytest-xdist inherit it.
RUN_VARIABLE = "FENCELINE_TEST_RUN"
#: Where that folder may be; `fenceline.testing.databases` chooses.
FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108 - the folder in it has a random name


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("fenceline_app", "module:attribute of the app under test; else `fenceline_app` is an empty one")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f'{MARKER}(app="module:attribute", delivery="inline"): which app `fenceline_app` is, and whether an enqueue '
        "runs the job at once",
    )
    if not hasattr(config, "workerinput"):
        os.environ[RUN_VARIABLE] = f"fenceline-test-{os.getpid()}-{os.urandom(4).hex()}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder, whichever process made it: the main process outlives the others."""
    name = None if hasattr(config, "workerinput") else os.environ.pop(RUN_VARIABLE, None)
    for folder in FOLDERS if name else ():
        shutil.rmtree(os.path.join(folder, str(name)), ignore_errors=True)  # noqa: PTH118 - pathlib may not be loaded


@pytest.fixture(scope="session")
def fenceline_databases() -> "Iterator[Databases]":
    """Creates the databases of tests."""
    from fenceline.testing.databases import Databases, short_and_quick  # noqa: PLC0415 - only for those who use it

    with Databases(folder=short_and_quick() / os.environ[RUN_VARIABLE]) as databases:
        yield databases


@pytest.fixture
def fenceline_dsn(fenceline_databases: "Databases") -> Iterator[str]:
    """The DSN of a fresh, migrated database, which is dropped after the test."""
    dsn = fenceline_databases.create()
    yield dsn
    fenceline_databases.drop(dsn)


@pytest.fixture
def fenceline_app(request: pytest.FixtureRequest, fenceline_dsn: str) -> "Iterator[TestedApp]":
    """The app under test, with its own database: the one that the marker or the setting names, or an empty one."""
    from fenceline.app import Fenceline  # noqa: PLC0415 - as above
    from fenceline.client.application import load_app  # noqa: PLC0415 - as above
    from fenceline.testing.tested_app import under_test  # noqa: PLC0415 - as above

    marker = request.node.get_closest_marker(MARKER)
    options = {} if marker is None else marker.kwargs
    if unknown := sorted(options.keys() - {"app", "delivery"}):
        raise pytest.UsageError(f"@pytest.mark.{MARKER} has no {', '.join(unknown)}: it takes app= and delivery=")
    name = options.get("app") or request.config.getini("fenceline_app")
    app = load_app(name) if name else Fenceline(fenceline_dsn)
    with under_test(app, fenceline_dsn, options.get("delivery", "postgres")) as tested:
        _close_with(request.node, tested)
        yield tested


def _close_with(item: Any, app: "TestedApp") -> None:
    """Close the app's connections at the end of an async test: its event loop is gone before the fixture's end."""
    function = item.obj
    if not inspect.iscoroutinefunction(function):
        return

    @functools.wraps(function)
    async def closing(*args: Any, **kwargs: Any) -> None:
        try:
            await function(*args, **kwargs)
        finally:
            await app.close()

    item.obj = closing
