"""Lanes from the environment: read when the schema is installed, and never again."""

import pytest
from tests.database.conftest import Connect

from fenceline.database.migrate import migrate
from fenceline.errors import FencelineError, InvalidLane

LANES = "select name, slots from fenceline.lane where name in ('interactive', 'reports') order by name"


async def test_they_are_set_when_the_schema_is_installed_and_left_to_operators_afterwards(
    connect_empty: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCELINE_LANES", '{"interactive": {"slots": 4}, "reports": {"slots": 1, "kinds": ["report"]}}')
    connection = await connect_empty()
    await migrate(connection)
    assert [tuple(row) for row in await connection.fetch(LANES)] == [("interactive", 4), ("reports", 1)]
    assert await connection.fetchval("select lane from fenceline.kind where name = 'report'") == "reports"
    await connection.execute("select fenceline.set_lane('interactive', '{\"slots\": 7}')")
    await migrate(connection)
    assert [tuple(row) for row in await connection.fetch(LANES)] == [("interactive", 7), ("reports", 1)]


@pytest.mark.parametrize(
    "text, error", [("interactive=4", FencelineError), ("[1]", FencelineError), ('{"x": {"slots": -1}}', InvalidLane)]
)
async def test_what_cannot_be_read_stops_the_install(
    text: str, error: type[Exception], connect_empty: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCELINE_LANES", text)
    connection = await connect_empty()
    with pytest.raises(error):
        await migrate(connection)
    assert await connection.fetchval("select to_regnamespace('fenceline')") is None
