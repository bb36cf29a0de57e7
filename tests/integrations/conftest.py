import pytest
from tests.integrations.examples import Shop


@pytest.fixture
def shop(database: str) -> Shop:
    return Shop(database)
