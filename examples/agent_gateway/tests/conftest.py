"""The gateway in the test's process, with Fenceline's server in it and a client that has an operator's token."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from agent_gateway.gateway import make_web
from agent_gateway.triggers import create_triggers
from fenceline.testing import TestedApp

SECRETS = {"slack": "slack-signing-secret", "github": "github-webhook-secret"}


def make_token(dsn: str) -> str:
    command = [sys.executable, "-m", "fenceline", "token", "create", "--role", "operator", "--dsn", dsn]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]


@pytest.fixture
def client(fenceline_app: TestedApp, fenceline_dsn: str) -> Iterator[TestClient]:
    with TestClient(make_web(), headers={"Authorization": f"Bearer {make_token(fenceline_dsn)}"}) as client:
        create_triggers(client, SECRETS)
        yield client


@pytest.fixture
def free_ports() -> list[int]:
    """Three that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [int(listening.getsockname()[1]) for listening in sockets]
    for listening in sockets:
        listening.close()
    return ports
