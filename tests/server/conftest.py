"""A server without sockets: requests go straight into the application, as whoever a test wants to be."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.conftest import Connect
from tests.server.worker import Hand

from fenceline import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.database import calls
from fenceline.model.secret import new_token
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

#: `client = await as_role("producer", tenant="acme", name="ci")`
AsRole = Callable[..., Awaitable[httpx.AsyncClient]]


@asynccontextmanager
async def running(api: FastAPI) -> AsyncIterator[FastAPI]:
    """The application with its life cycle, which httpx leaves alone."""
    async with api.router.lifespan_context(api):
        yield api


@pytest.fixture
async def queue_app(database: str) -> AsyncIterator[Fenceline]:
    """The application that the server was started with; a module may bring one with handlers."""
    async with Fenceline(database) as app:
        yield app


@pytest.fixture
def settings() -> ServerSettings:
    """A module may bring its own."""
    return ServerSettings(maintain=False, token_cache_seconds=0.0, stream_seconds=0.1, refusals_per_second=0)


@pytest.fixture
async def api(queue_app: Fenceline, settings: ServerSettings) -> AsyncIterator[FastAPI]:
    async with running(create_app(settings, queue_app)) as api:
        yield api


@pytest.fixture
async def anonymous(api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a token."""
    async with client_of(api) as client:
        yield client


def client_of(api: FastAPI, token: str | None = None) -> httpx.AsyncClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(app=api, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", headers=headers)


async def make_token(app: Fenceline, role: str, **options: Any) -> str:
    """`tenant`, `name`, `expires_at`."""
    token, token_hash = new_token()
    settings: dict[str, Any] = {"tenant": None, "name": None, "expires_at": None, **options}
    await app_parts(app).database().call(calls.tokens.create_token(token_hash, role=role, actor="test", **settings))
    return token


@pytest.fixture
async def as_role(api: FastAPI, queue_app: Fenceline) -> AsyncIterator[AsRole]:
    """Clients with a token of a role, closed when the test ends."""
    clients: list[httpx.AsyncClient] = []

    async def make(role: str, **options: Any) -> httpx.AsyncClient:
        clients.append(client_of(api, await make_token(queue_app, role, **options)))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
async def hand(connect: Connect) -> Hand:
    connection = await connect()
    worker_id = await connection.fetchval("select fenceline.register_worker('hand', 3600, p_version => '9.9')")
    return Hand(connection, worker_id)
