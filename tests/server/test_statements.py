"""What a request costs the database, counted: times are not judged here."""

from typing import Any

import pytest
from tests.server.conftest import AsRole
from tests.server.worker import Hand

from fenceline.runtime.database import Database
from fenceline.server.server_settings import ServerSettings


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(maintain=False, deliver=False, token_cache_seconds=2.0)


async def test_one_statement_per_request(as_role: AsRole, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = await as_role("operator")
    await operator.get("/v1/jobs")  # the token is known from here on
    statements: list[str] = []
    call = Database.call

    async def counted(self: Database, wanted: Any, connection: Any = None) -> Any:
        if "use_token" not in wanted.sql:  # asked now and then, however many requests there are
            statements.append(wanted.sql)
        return await call(self, wanted, connection)

    monkeypatch.setattr(Database, "call", counted)
    job = (await operator.post("/v1/jobs", json={"kind": "a"})).json()
    assert len(statements) == 1
    of_job = f"/v1/jobs/{job['id']}"
    for method, path in (
        ("GET", of_job),
        ("GET", f"{of_job}/attempts"),
        ("GET", f"{of_job}/logs"),
        ("GET", f"{of_job}/events"),
        ("POST", f"{of_job}/cancel"),
        ("POST", f"{of_job}/retry"),
        ("DELETE", of_job),
        ("GET", "/v1/jobs?kind=a&label=x:y"),
        ("GET", "/v1/admin/workers/lanes"),
        ("GET", "/v1/admin/workers/status"),
        ("GET", "/v1/admin/audit"),
    ):
        statements.clear()
        assert (await operator.request(method, path)).is_success, path
        assert len(statements) == 1, statements
