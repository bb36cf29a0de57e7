"""The graph's tables on the test's database, and the server as people with tokens see it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings
from fenceline.testing import TestedApp
from knowledge_graph.application import connect, set_up

AsRole = Callable[..., TestClient]


@pytest.fixture
def graph(fenceline_app: TestedApp) -> Iterator[Any]:
    set_up()
    with connect() as connection:
        yield connection


@pytest.fixture
def as_role(fenceline_app: TestedApp, fenceline_dsn: str, graph: Any) -> Iterator[AsRole]:
    """`as_role("operator", "bob")`: a client with a token of that role and name; a role of one's own by permissions."""
    made = subprocess.run(
        [sys.executable, "-m", "fenceline", "token", "create", "--role", "platform_admin", "--name", "root"],
        env={**os.environ, "FENCELINE_DSN": fenceline_dsn},
        capture_output=True,
        text=True,
        check=True,
    )
    server = create_app(ServerSettings(hosts=("testserver",)), fenceline_app)
    with TestClient(server, headers={"Authorization": f"Bearer {made.stdout.strip()}"}) as root:

        def as_role(role: str, name: str, permissions: list[str] | None = None) -> TestClient:
            if permissions is not None:
                root.post(f"/v1/roles/{role}", json={"permissions": permissions}).raise_for_status()
            token = root.post("/v1/tokens", json={"role": role, "name": name}).raise_for_status().json()["token"]
            client = TestClient(server, headers={"Authorization": f"Bearer {token}"})
            client.portal = root.portal  # on the one event loop that the server runs on
            return client

        yield as_role
