from collections.abc import Iterator

import pytest
from stand_ins.clouds import AWS_ROLE, clouds
from stand_ins.stack import Person, Stack, begin_test

from fenceline.testing.databases import Databases


@pytest.hookimpl(tryfirst=True)  # before fixtures, which wait for things too
def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("timeout")
    begin_test(float(marker.args[0] if marker else item.config.getini("timeout")))


@pytest.fixture(scope="session")
def stack(fenceline_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    dsn = fenceline_databases.create()
    with clouds() as (services, environment):
        stack = Stack(dsn, tmp_path_factory.mktemp("stack"), services, environment)
        try:
            stack.start_console()
            stack.start_runner("site-1", region="local")
            with stack.client(stack.token("operator", "ann")) as client:
                client.put("/api/account/aws", json={"identity": AWS_ROLE}).raise_for_status()
            yield stack
        finally:
            stack.stop()
    fenceline_databases.drop(dsn)


@pytest.fixture(scope="session")
def ann(stack: Stack) -> Iterator[Person]:
    with stack.client(stack.token("operator", "ann")) as client:
        yield Person(client)
