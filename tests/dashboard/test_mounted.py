"""The dashboard inside an application of somebody else's, under a path of it."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, expect
from tests.dashboard.conftest import new_context
from tests.dashboard.site import Site
from tests.support.patience import eventually_blocking

from fenceline import Fenceline
from fenceline.server.asgi_app import create_app
from fenceline.server.server_settings import ServerSettings

pytestmark = pytest.mark.xdist_group("dashboard embedding")


@pytest.fixture
def mounted(site_database: str) -> Iterator[str]:
    """The address of an application with the server at /queue."""
    server = create_app(ServerSettings(), Fenceline(site_database))

    @asynccontextmanager
    async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
        async with server.router.lifespan_context(server):
            yield

    web = FastAPI(lifespan=lifespan)
    web.mount("/queue", server)

    @web.get("/")
    async def home() -> str:
        return "the shop"

    running = uvicorn.Server(uvicorn.Config(web, port=0, log_level="warning"))
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        eventually_blocking(lambda: running.started or not thread.is_alive(), "the application starts")
        assert running.started, "the application did not start"
        port = running.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        running.should_exit = True
        thread.join()


def test_the_dashboard_works_under_a_path(browser: Browser, site_database: str, mounted: str) -> None:
    token = Site(site_database).token("fleet_operator")
    with new_context(browser, mounted) as context:
        elsewhere: list[str] = []
        context.on("request", lambda asked: None if "/queue/" in asked.url else elsewhere.append(asked.url))
        page = context.new_page()
        page.goto("/queue/")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Lanes", exact=True).click()
        expect(page.get_by_text("interactive").first).to_be_visible()
        assert page.url == f"{mounted}/queue/lanes"
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page).to_have_url(f"{mounted}/queue/jobs")
        page.reload()
        expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        assert elsewhere == []
